"""The configuration files of the shape tier: the published shapes and ids, and a mark that says the weights are
synthetic.

Speed depends on shapes, not on what the weights say, so speed can be measured without the published weights. Values
that no public source states for the checkpoint (positions of the transformers, layer scale) are chosen and change no
shape. `model_type` and friends are the published ones, because the loader that is measured must be the real one.
"""

from __future__ import annotations

from typing import Any

from engine.contract import MODEL_KIND, SAMPLE_RATE_HZ, SAMPLES_PER_FRAME

SYNTHETIC_KEY = "assay_synthetic"
SYNTHETIC_NOTICE = "synthetic weights of the published shapes; for measuring speed only; says nothing and is no release"
CODE_GROUPS = 16
LANGUAGE_IDS = {
    "english": 2050, "german": 2053, "spanish": 2054, "chinese": 2055, "japanese": 2058, "french": 2061, "korean": 2064,
    "russian": 2069, "italian": 2070, "portuguese": 2071,
}  # fmt: skip


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
        "codec_pad_id": 2148, "codec_bos_id": 2149, "codec_eos_token_id": 2150, "codec_think_id": 2154,
        "codec_nothink_id": 2155, "codec_think_bos_id": 2156, "codec_think_eos_id": 2157,
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
    decoder = {
        "attention_bias": False, "attention_dropout": 0.0, "hidden_act": "silu", "head_dim": 64, "rms_norm_eps": 1e-5,
        "rope_theta": 10_000, "max_position_embeddings": 8_000, "layer_scale_initial_scale": 0.01, "num_quantizers": CODE_GROUPS,
        "num_semantic_quantizers": 1, "sliding_window": 72, "upsample_rates": [8, 5, 4, 3], "upsampling_ratios": [2, 2],
        "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 8, "num_attention_heads": 16,
        "num_key_value_heads": 16, "codebook_size": 2048, "codebook_dim": 512, "latent_dim": 1024, "decoder_dim": 1536,
    }  # fmt: skip
    return {
        SYNTHETIC_KEY: {"notice": SYNTHETIC_NOTICE, "seed": seed},
        "architectures": ["Qwen3TTSTokenizerV2Model"],
        "model_type": "qwen3_tts_tokenizer_12hz",
        "decoder_config": decoder,
        "encoder_valid_num_quantizers": CODE_GROUPS,
        "input_sample_rate": SAMPLE_RATE_HZ,
        "output_sample_rate": SAMPLE_RATE_HZ,
        "encode_downsample_rate": SAMPLES_PER_FRAME,
        "decode_upsample_rate": SAMPLES_PER_FRAME,
    }


def generation_config() -> dict[str, Any]:
    """`generation_config.json`, the published defaults."""
    return {
        "do_sample": True, "repetition_penalty": 1.05, "temperature": 0.9, "top_p": 1.0, "top_k": 50, "subtalker_dosample": True,
        "subtalker_temperature": 0.9, "subtalker_top_p": 1.0, "subtalker_top_k": 50, "max_new_tokens": 8192,
    }  # fmt: skip


def _transformer(*, hidden: int, intermediate: int, layers: int, positions: int) -> dict[str, Any]:
    return {
        "hidden_size": hidden, "intermediate_size": intermediate, "num_hidden_layers": layers, "num_attention_heads": 16,
        "num_key_value_heads": 8, "head_dim": 128, "rms_norm_eps": 1e-6, "rope_theta": 1_000_000, "hidden_act": "silu",
        "attention_bias": False, "attention_dropout": 0.0, "max_position_embeddings": positions, "rope_scaling": None,
    }  # fmt: skip
