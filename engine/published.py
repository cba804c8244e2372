"""What the published model's configuration files say, for those who write such files: ids, sampling defaults, codec."""

from __future__ import annotations

from typing import Any

from engine.contract import SAMPLE_RATE_HZ, SAMPLES_PER_FRAME

CODE_GROUPS = 16
LANGUAGE_IDS = {
    "english": 2050, "german": 2053, "spanish": 2054, "chinese": 2055, "japanese": 2058, "french": 2061, "korean": 2064,
    "russian": 2069, "italian": 2070, "portuguese": 2071,
}  # fmt: skip
CODEC_IDS = {
    "codec_pad_id": 2148, "codec_bos_id": 2149, "codec_eos_token_id": 2150, "codec_think_id": 2154,
    "codec_nothink_id": 2155, "codec_think_bos_id": 2156, "codec_think_eos_id": 2157,
}  # fmt: skip
CODEC_DECODER: dict[str, Any] = {
    "attention_bias": False, "attention_dropout": 0.0, "hidden_act": "silu", "head_dim": 64, "rms_norm_eps": 1e-5,
    "rope_theta": 10_000, "max_position_embeddings": 8_000, "layer_scale_initial_scale": 0.01, "num_quantizers": CODE_GROUPS,
    "num_semantic_quantizers": 1, "sliding_window": 72, "upsample_rates": [8, 5, 4, 3], "upsampling_ratios": [2, 2],
    "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 8, "num_attention_heads": 16,
    "num_key_value_heads": 16, "codebook_size": 2048, "codebook_dim": 512, "latent_dim": 1024, "decoder_dim": 1536,
}  # fmt: skip


def generation_config() -> dict[str, Any]:
    """`generation_config.json`."""
    return {
        "do_sample": True, "repetition_penalty": 1.05, "temperature": 0.9, "top_p": 1.0, "top_k": 50, "subtalker_dosample": True,
        "subtalker_temperature": 0.9, "subtalker_top_p": 1.0, "subtalker_top_k": 50, "max_new_tokens": 8192,
    }  # fmt: skip


def codec_config(decoder: dict[str, Any]) -> dict[str, Any]:
    """`speech_tokenizer/config.json` around a decoder; the encoder is left out."""
    return {
        "architectures": ["Qwen3TTSTokenizerV2Model"],
        "model_type": "qwen3_tts_tokenizer_12hz",
        "decoder_config": decoder,
        "encoder_valid_num_quantizers": CODE_GROUPS,
        "input_sample_rate": SAMPLE_RATE_HZ,
        "output_sample_rate": SAMPLE_RATE_HZ,
        "encode_downsample_rate": SAMPLES_PER_FRAME,
        "decode_upsample_rate": SAMPLES_PER_FRAME,
    }
