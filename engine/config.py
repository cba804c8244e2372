"""The checkpoint's own configuration, read strictly.

The published `config.json` and `speech_tokenizer/config.json` are the only source of shapes and token ids: the
official package's class defaults differ from the checkpoint, so a missing key is refused rather than guessed. Keys
that this engine does not use are left alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.contract import MODEL_KIND, SAMPLE_RATE_HZ, SAMPLES_PER_FRAME
from engine.errors import ModelError
from engine.section import Section, read_section

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


def read_talker_config(path: Path) -> TalkerConfig:
    """Parse `config.json` of a VoiceDesign checkpoint.

    Raises:
        ModelError: unreadable, a key missing or mistyped, or a model of another type.
    """
    root = read_section(path)
    root.expect("model_type", MODEL_TYPE, "point --model at a Qwen3-TTS checkpoint")
    root.expect("tts_model_type", MODEL_KIND, "other Qwen3-TTS variants (base, custom_voice) are not served")
    root.expect("tokenizer_type", TOKENIZER_TYPE, "only the 12 Hz speech tokenizer is supported")
    talker = root.section("talker_config")
    predictor = talker.section("code_predictor_config")
    groups = talker.count("num_code_groups", at_least=2)
    vocab = talker.count("vocab_size", at_least=RESERVED_CODEC_IDS + 1)
    text_vocab = talker.count("text_vocab_size")
    predictor.expect("num_code_groups", groups, "talker and predictor must agree")
    return TalkerConfig(
        transformer=_transformer(talker),
        predictor=PredictorConfig(
            transformer=_transformer(predictor), vocab=predictor.count("vocab_size"), code_groups=groups
        ),
        vocab=vocab,
        text_vocab=text_vocab,
        text_hidden=talker.count("text_hidden_size"),
        code_groups=groups,
        codec_ids=_codec_ids(talker, vocab),
        text_ids=TextIds(
            im_start=root.token("im_start_token_id", stop=text_vocab),
            im_end=root.token("im_end_token_id", stop=text_vocab),
            tts_pad=root.token("tts_pad_token_id", stop=text_vocab),
            tts_bos=root.token("tts_bos_token_id", stop=text_vocab),
            tts_eos=root.token("tts_eos_token_id", stop=text_vocab),
        ),
    )


def read_codec_config(path: Path) -> CodecConfig:
    """Parse the decoder part of `speech_tokenizer/config.json`.

    Raises:
        ModelError: unreadable, a key missing or mistyped, another sample rate or frame length.
    """
    root = read_section(path)
    root.expect("model_type", TOKENIZER_TYPE, "only the 12 Hz speech tokenizer is supported")
    root.expect("output_sample_rate", SAMPLE_RATE_HZ, "the wire carries 24 kHz audio")
    root.expect("decode_upsample_rate", SAMPLES_PER_FRAME, "one codec frame is 1,920 samples")
    decoder = root.section("decoder_config")
    config = CodecConfig(
        transformer=_transformer(decoder),
        sliding_window=decoder.count("sliding_window", at_least=2),
        layer_scale=decoder.number("layer_scale_initial_scale"),
        codebooks=decoder.count("num_quantizers", at_least=2),
        codebook_size=decoder.count("codebook_size"),
        codebook_dim=decoder.count("codebook_dim"),
        latent=decoder.count("latent_dim"),
        decoder_dim=decoder.count("decoder_dim"),
        upsampling_ratios=decoder.factors("upsampling_ratios"),
        upsample_rates=decoder.factors("upsample_rates"),
    )
    produced = math.prod((*config.upsampling_ratios, *config.upsample_rates))
    if produced != SAMPLES_PER_FRAME:
        raise ModelError(
            f"{path.name}: the upsampling factors give {produced} samples a frame, not {SAMPLES_PER_FRAME}"
        )
    return config


def _transformer(section: Section) -> TransformerConfig:
    section.expect("hidden_act", "silu", "only SwiGLU feed-forward layers are implemented")
    section.expect("attention_bias", False, "attention projections with bias are not implemented")
    config = TransformerConfig(
        hidden=section.count("hidden_size"),
        intermediate=section.count("intermediate_size"),
        layers=section.count("num_hidden_layers"),
        heads=section.count("num_attention_heads"),
        kv_heads=section.count("num_key_value_heads"),
        head_dim=section.count("head_dim", at_least=2),
        eps=section.number("rms_norm_eps"),
        rope_theta=section.number("rope_theta"),
        max_positions=section.count("max_position_embeddings"),
    )
    section.require(config.heads % config.kv_heads == 0, "num_key_value_heads must divide num_attention_heads")
    section.require(config.head_dim % 2 == 0, "head_dim must be even for rotary positions")
    return config


def _codec_ids(talker: Section, vocab: int) -> CodecIds:
    def control(key: str) -> int:
        return talker.token(key, start=vocab - RESERVED_CODEC_IDS, stop=vocab)

    return CodecIds(
        pad=control("codec_pad_id"),
        bos=control("codec_bos_id"),
        eos=control("codec_eos_token_id"),
        think=control("codec_think_id"),
        nothink=control("codec_nothink_id"),
        think_bos=control("codec_think_bos_id"),
        think_eos=control("codec_think_eos_id"),
        languages=talker.tokens("codec_language_id", stop=vocab),
    )
