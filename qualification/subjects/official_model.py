"""The official package with the weights of a model directory: text in, PCM out, and whether it ended by itself.

Runs only in an environment of its own with `qwen-tts` 0.1.1 (installed without its dependencies) and its transformers
4.57.3. The package imports torchaudio for a tokenizer that is not used here, so an empty stand-in takes its place.
Source of the prompt's form and of `generate`: `qwen_tts.inference.qwen3_tts_model.Qwen3TTSModel.generate_voice_design`.
"""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.torch import load_file


def _stand_in(name: str) -> types.ModuleType:
    module = types.ModuleType(name)
    sys.modules[name] = module
    return module


_stand_in("torchaudio").compliance = _stand_in("torchaudio.compliance")  # type: ignore[attr-defined]  # a stand-in
sys.modules["torchaudio.compliance"].kaldi = _stand_in("torchaudio.compliance.kaldi")  # type: ignore[attr-defined]  # too

from qwen_tts.core.models.configuration_qwen3_tts import Qwen3TTSConfig  # noqa: E402  # after the stand-in
from qwen_tts.core.models.modeling_qwen3_tts import Qwen3TTSForConditionalGeneration  # noqa: E402
from qwen_tts.core.tokenizer_12hz.configuration_qwen3_tts_tokenizer_v2 import (  # noqa: E402
    Qwen3TTSTokenizerV2DecoderConfig,
)
from qwen_tts.core.tokenizer_12hz.modeling_qwen3_tts_tokenizer_v2 import Qwen3TTSTokenizerV2Decoder  # noqa: E402


@dataclass(frozen=True, kw_only=True)
class Spoken:
    """Mono 24 kHz signed 16-bit little-endian PCM of `frames` codec frames; `ended`: EOS was among the tokens drawn."""

    pcm: bytes
    frames: int
    ended: bool


@dataclass(frozen=True, kw_only=True)
class Package:
    """The package's own parts with the weights of a directory, FP32 on the CPU."""

    model: Any
    codec: Any
    tokenizer: Any


def load_package(directory: Path) -> Package:
    """Load a model directory into the package.

    Raises:
        OSError, KeyError, RuntimeError: the directory is no model that the package can hold.
    """
    config = Qwen3TTSConfig(**json.loads((directory / "config.json").read_text("utf-8")))
    model = Qwen3TTSForConditionalGeneration(config).float().eval()
    weights = {name: value.float() for name, value in load_file(directory / "model.safetensors").items()}
    model.load_state_dict(weights, strict=True)
    decoder = json.loads((directory / "speech_tokenizer/config.json").read_text("utf-8"))["decoder_config"]
    codec = Qwen3TTSTokenizerV2Decoder(Qwen3TTSTokenizerV2DecoderConfig(**decoder)).eval()
    stored = load_file(directory / "speech_tokenizer/model.safetensors")
    codec.load_state_dict({name.removeprefix("decoder."): value for name, value in stored.items()}, strict=True)
    return Package(model=model, codec=codec, tokenizer=transformers.AutoTokenizer.from_pretrained(directory))


class OfficialSpeaker:
    """Talker, predictor and codec decoder of the package on one device; the codec stays FP32, as ours does."""

    def __init__(self, directory: Path, *, device: str, dtype: torch.dtype) -> None:
        package = load_package(directory)
        self._model = package.model.to(device=device, dtype=dtype)
        self._codec = package.codec.to(device)
        self._tokenizer = package.tokenizer
        self._eos = int(self._model.config.talker_config.codec_eos_token_id)
        self._device = device

    def speak(
        self, *, text: str, instruction: str, language: str, seed: int, frames: int, arguments: Mapping[str, Any]
    ) -> Spoken:
        """Speak at most `frames` frames. Torch's global generator is seeded, so only one call may run at a time."""
        torch.manual_seed(seed)
        drawn: list[torch.Tensor] = []
        inner = self._model.talker.generate

        def keep_tokens(**given: Any) -> Any:
            result = inner(**given)
            drawn.append(result.sequences)
            return result

        self._model.talker.generate = keep_tokens
        try:
            with torch.no_grad():
                codes, _ = self._model.generate(
                    input_ids=[self._ids(f"<|im_start|>assistant\n{text}<|im_end|>\n<|im_start|>assistant\n")],
                    instruct_ids=[self._ids(f"<|im_start|>user\n{instruction}<|im_end|>\n")],
                    languages=[language],
                    non_streaming_mode=True,
                    max_new_tokens=frames + 1,  # the token after the last frame, which may be EOS
                    **arguments,
                )
                samples = self._codec(codes[0].T[None])[0, 0]
        finally:
            self._model.talker.generate = inner
        ended = bool((drawn[0][0] == self._eos).any())
        return Spoken(pcm=_pcm(samples), frames=int(codes[0].shape[0]), ended=ended)

    def _ids(self, text: str) -> torch.Tensor:
        ids: torch.Tensor = self._tokenizer(text, return_tensors="pt")["input_ids"]
        return ids.to(self._device)


def _pcm(samples: torch.Tensor) -> bytes:
    """Samples [N] in -1..1 -> PCM bytes."""
    scaled = np.rint(samples.float().cpu().numpy().clip(-1.0, 1.0) * 32_767)
    return bytes(scaled.astype("<i2").tobytes())
