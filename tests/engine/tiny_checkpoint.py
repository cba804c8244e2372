"""Writes small random checkpoints in the published layout: real loading code, no real weights.

`TinyShape` varies what parity must not depend on: predictor width equal to the talker's or not, grouped or plain
attention, window length.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import pre_tokenizers

from engine.codec import CodecDecoder
from engine.config import read_codec_config, read_talker_config
from engine.talker import SpeechModel

ROLE = "assistant"
CODEC_GAIN = 0.7  # less, and the codes would hardly be heard beside the biases
CODEC_PEAK = 0.5  # loudest sample of random codes: well inside [-1, 1], so that no clamp hides a difference
CODES = 64  # codec vocabulary below the control ids
LANGUAGES = {"english": CODES + 2, "german": CODES + 5, "chinese": CODES + 7}


@dataclass(frozen=True, kw_only=True)
class TinyShape:
    """What may vary between tiny models."""

    hidden: int = 64
    predictor_hidden: int = 32
    heads: int = 4
    kv_heads: int = 2
    layers: int = 2
    window: int = 8
    code_groups: int = 16
    seed: int = 0
    ends: bool = True  # False: end of speech never becomes the most probable code


def write_tiny_checkpoint(directory: Path, shape: TinyShape | None = None) -> Path:
    """Write config, tokenizer and random weights to `directory` and return it."""
    shape = shape or TinyShape()
    (directory / "speech_tokenizer").mkdir(parents=True, exist_ok=True)
    text = _write_tokenizer(directory)
    _write_json(directory / "config.json", _config(shape, text))
    _write_json(directory / "generation_config.json", GENERATION)
    _write_json(directory / "speech_tokenizer/config.json", _codec_config(shape))
    torch.manual_seed(shape.seed)
    model = SpeechModel(read_talker_config(directory / "config.json"))
    _randomise(model)
    if not shape.ends:
        with torch.no_grad():
            model.talker.codec_head.weight[model.talker.config.codec_ids.eos] = 0.0
    save_file({k: v.to(torch.bfloat16) for k, v in model.state_dict().items()}, directory / "model.safetensors")
    codec = CodecDecoder(read_codec_config(directory / "speech_tokenizer/config.json"))
    _randomise(codec, gain=CODEC_GAIN)
    _set_peak(codec)
    tensors = {f"decoder.{name}": value for name, value in codec.state_dict().items()}
    save_file(tensors, directory / "speech_tokenizer/model.safetensors")
    return directory


GENERATION = {
    "do_sample": True, "repetition_penalty": 1.05, "temperature": 0.9, "top_p": 1.0, "top_k": 50,
    "subtalker_dosample": True, "subtalker_temperature": 0.9, "subtalker_top_p": 1.0, "subtalker_top_k": 50,
    "max_new_tokens": 8192,
}  # fmt: skip


def _randomise(module: torch.nn.Module, gain: float = 1.0) -> None:
    """Random weights with enough spread for logits to differ clearly, rounded to BF16 so that every type holds them."""
    with torch.no_grad():
        for name, value in module.named_parameters():
            if name.endswith(("norm.weight", "cluster_usage", "layer_scale.scale")):
                value.copy_(1.0 + 0.1 * torch.randn_like(value))
            elif value.ndim == 1:
                value.copy_(0.1 * torch.randn_like(value))
            else:
                fan_in = value[0].numel() if "embedding" not in name else 1
                value.copy_(gain * torch.randn_like(value) / fan_in**0.5)
            value.copy_(value.to(torch.bfloat16))


def _set_peak(codec: CodecDecoder) -> None:
    """Scale the last convolution, which is linear, until random codes peak at `CODEC_PEAK`."""
    probe = torch.randint(0, CODES, (4, codec.config.codebooks, 24), generator=torch.Generator().manual_seed(0))
    last = list(codec.decoder[-1].parameters())
    with torch.no_grad():
        for value in last:
            value.mul_(1e-3)  # far from the clamp
        peak = codec(probe).abs().max()
        for value in last:
            value.mul_(CODEC_PEAK / peak)


def _write_tokenizer(directory: Path) -> dict[str, int]:
    """A byte-level vocabulary whose only long token is `assistant` (the prompt counts on it), then control tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [(ROLE[:size], ROLE[size]) for size in range(1, len(ROLE))]
    alphabet += [left + right for left, right in merges]
    _write_json(directory / "vocab.json", {symbol: index for index, symbol in enumerate(alphabet)})
    lines = ["#version: 0.2", *(f"{left} {right}" for left, right in merges)]
    (directory / "merges.txt").write_text("\n".join(lines) + "\n", "utf-8")
    control = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tts_pad>", "<tts_bos>", "<tts_eos>")
    ids = {token: len(alphabet) + index for index, token in enumerate(control)}
    added = {
        str(index): {
            "content": token, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False,
            "special": True,
        }
        for token, index in ids.items()
    }  # fmt: skip
    tokenizer_config = {"tokenizer_class": "Qwen2Tokenizer", "added_tokens_decoder": added, "unk_token": None}
    _write_json(directory / "tokenizer_config.json", tokenizer_config)
    return ids


def _transformer(**overrides: Any) -> dict[str, Any]:
    base = {
        "hidden_act": "silu", "attention_bias": False, "attention_dropout": 0.0, "rms_norm_eps": 1e-6,
        "rope_theta": 1_000_000, "max_position_embeddings": 4096, "head_dim": 16, "rope_scaling": None,
    }  # fmt: skip
    return {**base, **overrides}


def _config(shape: TinyShape, text: dict[str, int]) -> dict[str, Any]:
    attention = {"num_attention_heads": shape.heads, "num_key_value_heads": shape.kv_heads}
    predictor = _transformer(
        hidden_size=shape.predictor_hidden, intermediate_size=64, num_hidden_layers=2, vocab_size=CODES,
        num_code_groups=shape.code_groups, model_type="qwen3_tts_talker_code_predictor", **attention,
    )  # fmt: skip
    scaling = {"rope_type": "default", "type": "default", "interleaved": True, "mrope_section": [4, 2, 2]}
    talker = _transformer(
        hidden_size=shape.hidden, intermediate_size=96, num_hidden_layers=shape.layers, vocab_size=CODES + 1024,
        text_vocab_size=max(text.values()) + 1, text_hidden_size=48, num_code_groups=shape.code_groups,
        code_predictor_config=predictor, model_type="qwen3_tts_talker",
        codec_pad_id=CODES + 100, codec_bos_id=CODES + 101, codec_eos_token_id=CODES + 102, codec_think_id=CODES + 106,
        codec_nothink_id=CODES + 107, codec_think_bos_id=CODES + 108, codec_think_eos_id=CODES + 109,
        codec_language_id=LANGUAGES, spk_id={}, spk_is_dialect={}, **attention,
    )  # fmt: skip
    talker["rope_scaling"] = scaling
    return {
        "architectures": ["Qwen3TTSForConditionalGeneration"], "model_type": "qwen3_tts",
        "tts_model_type": "voice_design", "tts_model_size": "tiny", "tokenizer_type": "qwen3_tts_tokenizer_12hz",
        "im_start_token_id": text["<|im_start|>"], "im_end_token_id": text["<|im_end|>"],
        "tts_pad_token_id": text["<tts_pad>"], "tts_bos_token_id": text["<tts_bos>"],
        "tts_eos_token_id": text["<tts_eos>"], "talker_config": talker,
    }  # fmt: skip


def _codec_config(shape: TinyShape) -> dict[str, Any]:
    decoder = _transformer(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
        rope_theta=10_000, rms_norm_eps=1e-5, sliding_window=shape.window, layer_scale_initial_scale=0.5,
        num_quantizers=shape.code_groups, codebook_size=CODES, codebook_dim=32, latent_dim=48, decoder_dim=64,
        upsample_rates=[8, 5, 4, 3], upsampling_ratios=[2, 2],
    )  # fmt: skip
    return {
        "model_type": "qwen3_tts_tokenizer_12hz", "output_sample_rate": 24_000, "input_sample_rate": 24_000,
        "decode_upsample_rate": 1920, "encode_downsample_rate": 1920,
        "encoder_valid_num_quantizers": shape.code_groups, "decoder_config": decoder,
    }  # fmt: skip


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", "utf-8")
