"""The configuration files of the shape tier: the published shapes and ids, and a mark that says the weights are
synthetic.

Speed depends on shapes, not on what the weights say, so speed can be measured without the published weights. Values
that no public source states for the checkpoint (positions of the transformers, layer scale) are chosen and change no
shape. `model_type` and friends are the published ones, because the loader that is measured must be the real one.
"""

from __future__ import annotations

from typing import Any

from engine import published
from engine.contract import MODEL_KIND
from engine.published import CODE_GROUPS, CODEC_DECODER, CODEC_IDS, LANGUAGE_IDS

SYNTHETIC_KEY = "assay_synthetic"
SYNTHETIC_NOTICE = "synthetic weights of the published shapes; for measuring speed only; says nothing and is no release"


def model_config(seed: int) -> dict[str, Any]:
    """`config.json`."""
    predictor = _transformer(hidden=1024, intermediate=3072, layers=5, positions=65_536) | {
        "model_type": "qwen3_tts_talker_code_predictor",
        "vocab_size": 2048,
        "num_code_groups": CODE_GROUPS,
    }
    talker = _transformer(hidden=2048, intermediate=6144, layers=28, positions=32_768) | {
        "model_type": "qwen3_tts_talker",
        "code_predictor_config": predictor,
        "vocab_size": 3072,
        "text_vocab_size": 151_936,
        "text_hidden_size": 2048,
        "num_code_groups": CODE_GROUPS,
        "rope_scaling": {"interleaved": True, "mrope_section": [24, 20, 20], "rope_type": "default", "type": "default"},
        **CODEC_IDS,
        "codec_language_id": LANGUAGE_IDS,
        "spk_id": {},
        "spk_is_dialect": {},
    }  # fmt: skip
    return {
        SYNTHETIC_KEY: {"notice": SYNTHETIC_NOTICE, "seed": seed},
        "architectures": ["Qwen3TTSForConditionalGeneration"],
        "model_type": "qwen3_tts",
        "tts_model_type": MODEL_KIND,
        "tts_model_size": "1b7",
        "tokenizer_type": "qwen3_tts_tokenizer_12hz",
        "im_start_token_id": 151_644,
        "im_end_token_id": 151_645,
        "assistant_token_id": 77_091,
        "tts_pad_token_id": 151_671,
        "tts_bos_token_id": 151_672,
        "tts_eos_token_id": 151_673,
        "talker_config": talker,
    }


def codec_config(seed: int) -> dict[str, Any]:
    """`speech_tokenizer/config.json`, decoder part only."""
    return {
        SYNTHETIC_KEY: {"notice": SYNTHETIC_NOTICE, "seed": seed},
        **published.codec_config(CODEC_DECODER),
    }


def _transformer(*, hidden: int, intermediate: int, layers: int, positions: int) -> dict[str, Any]:
    return {
        "hidden_size": hidden, "intermediate_size": intermediate, "num_hidden_layers": layers, "num_attention_heads": 16,
        "num_key_value_heads": 8, "head_dim": 128, "rms_norm_eps": 1e-6, "rope_theta": 1_000_000, "hidden_act": "silu",
        "attention_bias": False, "attention_dropout": 0.0, "max_position_embeddings": positions, "rope_scaling": None,
    }  # fmt: skip
