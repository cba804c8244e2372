"""The configuration files of the embedded model, with the published keys and in the published order of control ids.

The codec vocabulary is one codebook plus 1,024 reserved ids. A reserved id keeps its published distance from the
first one, so pad is
`codebook_size + 100` where the published model has 2,048 + 100.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine import published
from engine.config import RESERVED_CODEC_IDS, CodecConfig, TalkerConfig, read_codec_config, read_talker_config
from engine.contract import MODEL_KIND
from engine.published import CODE_GROUPS, CODEC_DECODER, CODEC_IDS, LANGUAGE_IDS, generation_config
from recipe.settings import ModelShape
from recipe.tokenizer import VOCABULARY, control_ids

HEAD_DIM = 64
PUBLISHED_FIRST_RESERVED = 2_048


def write_configs(directory: Path, shape: ModelShape) -> tuple[TalkerConfig, CodecConfig]:
    """Write `config.json`, `generation_config.json` and `speech_tokenizer/config.json` beside the tokenizer, and read
    them back strictly."""
    (directory / "speech_tokenizer").mkdir(parents=True, exist_ok=True)
    vocabulary = json.loads((directory / VOCABULARY).read_text("utf-8"))
    _write(directory / "config.json", model_config(shape, assistant=vocabulary["assistant"]))
    _write(directory / "generation_config.json", generation_config())
    _write(directory / "speech_tokenizer" / "config.json", codec_config(shape))
    return (
        read_talker_config(directory / "config.json"),
        read_codec_config(directory / "speech_tokenizer" / "config.json"),
    )


def model_config(shape: ModelShape, *, assistant: int) -> dict[str, Any]:
    """`config.json`; `assistant` is the id of the role word."""
    ids = control_ids(shape.text_vocabulary)
    shift = shape.codebook_size - PUBLISHED_FIRST_RESERVED
    predictor = _transformer(
        shape.predictor_width, shape.predictor_intermediate, shape.predictor_layers, heads=2, kv_heads=1
    )
    talker = _transformer(shape.width, shape.intermediate, shape.layers, heads=4, kv_heads=2) | {
        "code_predictor_config": predictor
        | {
            "model_type": "qwen3_tts_talker_code_predictor",
            "vocab_size": shape.codebook_size,
            "num_code_groups": CODE_GROUPS,
            "max_window_layers": shape.predictor_layers,
            "layer_types": ["full_attention"] * shape.predictor_layers,
        },
        "model_type": "qwen3_tts_talker",
        "vocab_size": shape.codebook_size + RESERVED_CODEC_IDS,
        "text_vocab_size": shape.text_vocabulary,
        "text_hidden_size": shape.text_width,
        "num_code_groups": CODE_GROUPS,
        "position_id_per_seconds": 13,
        "rope_scaling": {"interleaved": True, "mrope_section": [12, 10, 10], "rope_type": "default", "type": "default"},
        "codec_language_id": {name: number + shift for name, number in LANGUAGE_IDS.items()},
        "spk_id": {},
        "spk_is_dialect": {},
        **{name: number + shift for name, number in CODEC_IDS.items()},
    }
    return {
        "architectures": ["Qwen3TTSForConditionalGeneration"],
        "model_type": "qwen3_tts",
        "tokenizer_type": "qwen3_tts_tokenizer_12hz",
        "tts_model_size": "reference",
        "tts_model_type": MODEL_KIND,
        "assistant_token_id": assistant,
        "im_start_token_id": ids["<|im_start|>"],
        "im_end_token_id": ids["<|im_end|>"],
        "tts_pad_token_id": ids["<tts_pad>"],
        "tts_bos_token_id": ids["<tts_text_bos>"],
        "tts_eos_token_id": ids["<tts_text_eod>"],
        "talker_config": talker,
    }


def codec_config(shape: ModelShape) -> dict[str, Any]:
    """`speech_tokenizer/config.json`, decoder part only: the encoder is not shipped."""
    heads = max(1, shape.latent // HEAD_DIM)
    decoder = CODEC_DECODER | {
        "sliding_window": 16,
        "hidden_size": shape.latent,
        "intermediate_size": 2 * shape.latent,
        "num_hidden_layers": 2,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "codebook_size": shape.codebook_size,
        "codebook_dim": shape.codebook_dim,
        "latent_dim": shape.latent,
        "decoder_dim": shape.decoder_dim,
    }
    return published.codec_config(decoder)


def _transformer(hidden: int, intermediate: int, layers: int, *, heads: int, kv_heads: int) -> dict[str, Any]:
    return {
        "attention_bias": False, "attention_dropout": 0, "head_dim": HEAD_DIM, "hidden_act": "silu",
        "hidden_size": hidden,
        "initializer_range": 0.02, "intermediate_size": intermediate, "max_position_embeddings": 4_096,
        "num_attention_heads": heads, "num_hidden_layers": layers, "num_key_value_heads": kv_heads,
        "rms_norm_eps": 1e-6,
        "rope_scaling": None, "rope_theta": 1_000_000, "sliding_window": None, "use_cache": True,
        "use_sliding_window": False,
    }  # fmt: skip


def _write(path: Path, values: dict[str, Any]) -> None:
    path.write_text(json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")
