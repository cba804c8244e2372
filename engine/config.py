"""The checkpoint's own configuration, read strictly.

The published `config.json` and `speech_tokenizer/config.json` are the only source of shapes and token ids: the official
package's class defaults differ from the checkpoint, so a missing key is refused rather than guessed. Keys that this engine
does not use are left alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from engine.contract import MODEL_KIND, SAMPLE_RATE_HZ, SAMPLES_PER_FRAME
from engine.errors import ModelError

T = TypeVar("T")

MODEL_TYPE = "qwen3_tts"
TOKENIZER_TYPE = "qwen3_tts_tokenizer_12hz"
RESERVED_CODEC_IDS = 1_024  # the last ids of the talker's codec vocabulary are control ids


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """Shape of one decoder-only transformer."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    eps: float
    rope_theta: float
    max_positions: int


@dataclass(frozen=True, kw_only=True)
class PredictorConfig:
    """The code predictor: one transformer over at most 17 positions, one embedding and head a codebook."""

    transformer: TransformerConfig
    vocab: int
    code_groups: int


@dataclass(frozen=True, kw_only=True)
class CodecIds:
    """Control ids of the talker's codec vocabulary."""

    pad: int
    bos: int
    eos: int
    think: int
    nothink: int
    think_bos: int
    think_eos: int
    languages: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class TextIds:
    """Control ids of the text vocabulary."""

    im_start: int
    im_end: int
    tts_pad: int
    tts_bos: int
    tts_eos: int


@dataclass(frozen=True, kw_only=True)
class TalkerConfig:
    """The talker with everything a prompt needs."""

    transformer: TransformerConfig
    predictor: PredictorConfig
    vocab: int
    text_vocab: int
    text_hidden: int
    code_groups: int
    codec_ids: CodecIds
    text_ids: TextIds


@dataclass(frozen=True, kw_only=True)
class CodecConfig:
    """The codec decoder: codes to 24 kHz samples."""

    transformer: TransformerConfig
    sliding_window: int
    layer_scale: float
    codebooks: int
    codebook_size: int
    codebook_dim: int
    latent: int
    decoder_dim: int
    upsampling_ratios: tuple[int, ...]
    upsample_rates: tuple[int, ...]


class _Section:
    """A JSON object that remembers where it came from and refuses missing or mistyped keys."""

    def __init__(self, values: object, where: str) -> None:
        if not isinstance(values, dict):
            raise ModelError(f"{where} must be a JSON object")
        self._values = cast("dict[str, Any]", values)
        self._where = where

    def integer(self, key: str) -> int:
        return self._typed(key, int)

    def number(self, key: str) -> float:
        value = self._get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ModelError(f"{self._where}: {key} must be a number, found {value!r}")
        return float(value)

    def text(self, key: str) -> str:
        return self._typed(key, str)

    def section(self, key: str) -> _Section:
        return _Section(self._get(key), f"{self._where}: {key}")

    def integers(self, key: str) -> tuple[int, ...]:
        value = self._get(key)
        if not isinstance(value, list) or not all(type(item) is int for item in value):
            raise ModelError(f"{self._where}: {key} must be a list of integers, found {value!r}")
        return tuple(value)

    def integer_map(self, key: str) -> dict[str, int]:
        value = self._get(key)
        if not isinstance(value, dict) or not all(type(item) is int for item in value.values()):
            raise ModelError(f"{self._where}: {key} must map names to integers")
        return dict(value)

    def expect(self, key: str, expected: object, mend: str) -> None:
        found = self._get(key)
        if found != expected:
            raise ModelError(f"{self._where}: {key} is {found!r}, this engine needs {expected!r}; {mend}")

    def _typed(self, key: str, kind: type[T]) -> T:
        value = self._get(key)
        if type(value) is not kind:
            raise ModelError(f"{self._where}: {key} must be of type {kind.__name__}, found {value!r}")
        return value

    def _get(self, key: str) -> Any:
        if key not in self._values:
            raise ModelError(f"{self._where}: key {key!r} is missing; the engine does not guess model shapes")
        return self._values[key]


def read_talker_config(path: Path) -> TalkerConfig:
    """Parse `config.json` of a VoiceDesign checkpoint.

    Raises:
        ModelError: unreadable, a key missing or mistyped, or a model of another type.
    """
    root = _read(path)
    root.expect("model_type", MODEL_TYPE, "point --model at a Qwen3-TTS checkpoint")
    root.expect("tts_model_type", MODEL_KIND, "other Qwen3-TTS variants (base, custom_voice) are not served")
    root.expect("tokenizer_type", TOKENIZER_TYPE, "only the 12 Hz speech tokenizer is supported")
    talker = root.section("talker_config")
    predictor = talker.section("code_predictor_config")
    groups = talker.integer("num_code_groups")
    predictor.expect("num_code_groups", groups, "talker and predictor must agree")
    return TalkerConfig(
        transformer=_transformer(talker),
        predictor=PredictorConfig(
            transformer=_transformer(predictor), vocab=predictor.integer("vocab_size"), code_groups=groups
        ),
        vocab=talker.integer("vocab_size"),
        text_vocab=talker.integer("text_vocab_size"),
        text_hidden=talker.integer("text_hidden_size"),
        code_groups=groups,
        codec_ids=_codec_ids(talker),
        text_ids=TextIds(
            im_start=root.integer("im_start_token_id"),
            im_end=root.integer("im_end_token_id"),
            tts_pad=root.integer("tts_pad_token_id"),
            tts_bos=root.integer("tts_bos_token_id"),
            tts_eos=root.integer("tts_eos_token_id"),
        ),
    )


def read_codec_config(path: Path) -> CodecConfig:
    """Parse the decoder part of `speech_tokenizer/config.json`.

    Raises:
        ModelError: unreadable, a key missing or mistyped, another sample rate or frame length.
    """
    root = _read(path)
    root.expect("model_type", TOKENIZER_TYPE, "only the 12 Hz speech tokenizer is supported")
    root.expect("output_sample_rate", SAMPLE_RATE_HZ, "the wire carries 24 kHz audio")
    root.expect("decode_upsample_rate", SAMPLES_PER_FRAME, "one codec frame is 1,920 samples")
    decoder = root.section("decoder_config")
    config = CodecConfig(
        transformer=_transformer(decoder),
        sliding_window=decoder.integer("sliding_window"),
        layer_scale=decoder.number("layer_scale_initial_scale"),
        codebooks=decoder.integer("num_quantizers"),
        codebook_size=decoder.integer("codebook_size"),
        codebook_dim=decoder.integer("codebook_dim"),
        latent=decoder.integer("latent_dim"),
        decoder_dim=decoder.integer("decoder_dim"),
        upsampling_ratios=decoder.integers("upsampling_ratios"),
        upsample_rates=decoder.integers("upsample_rates"),
    )
    produced = 1
    for factor in (*config.upsampling_ratios, *config.upsample_rates):
        produced *= factor
    if produced != SAMPLES_PER_FRAME:
        raise ModelError(
            f"{path.name}: the upsampling factors give {produced} samples a frame, not {SAMPLES_PER_FRAME}"
        )
    return config


def _read(path: Path) -> _Section:
    try:
        values = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise ModelError(f"{path} is missing; give a complete model directory with --model") from error
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read as JSON ({error}); fetch the file again") from error
    return _Section(values, path.name)


def _transformer(section: _Section) -> TransformerConfig:
    section.expect("hidden_act", "silu", "only SwiGLU feed-forward layers are implemented")
    section.expect("attention_bias", False, "attention projections with bias are not implemented")
    return TransformerConfig(
        hidden=section.integer("hidden_size"),
        intermediate=section.integer("intermediate_size"),
        layers=section.integer("num_hidden_layers"),
        heads=section.integer("num_attention_heads"),
        kv_heads=section.integer("num_key_value_heads"),
        head_dim=section.integer("head_dim"),
        eps=section.number("rms_norm_eps"),
        rope_theta=section.number("rope_theta"),
        max_positions=section.integer("max_position_embeddings"),
    )


def _codec_ids(talker: _Section) -> CodecIds:
    return CodecIds(
        pad=talker.integer("codec_pad_id"),
        bos=talker.integer("codec_bos_id"),
        eos=talker.integer("codec_eos_token_id"),
        think=talker.integer("codec_think_id"),
        nothink=talker.integer("codec_nothink_id"),
        think_bos=talker.integer("codec_think_bos_id"),
        think_eos=talker.integer("codec_think_eos_id"),
        languages=talker.integer_map("codec_language_id"),
    )
