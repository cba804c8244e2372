"""The checkpoint's configuration is read strictly: every key it needs, of its type, within the vocabulary."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.config import read_codec_config, read_talker_config
from engine.errors import ModelError
from tests.engine.tiny_checkpoint import CODES, LANGUAGES

UNUSED = {  # keys of the published layout that no shape or id depends on
    "architectures", "tts_model_size", "attention_dropout", "rope_scaling", "spk_id", "spk_is_dialect",
    "input_sample_rate", "encode_downsample_rate", "encoder_valid_num_quantizers",
}  # fmt: skip


@pytest.fixture
def talker(tiny_directory: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((tiny_directory / "config.json").read_bytes())
    return values


@pytest.fixture
def codec(tiny_directory: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((tiny_directory / "speech_tokenizer/config.json").read_bytes())
    return values


def written(directory: Path, values: object) -> Path:
    path = directory / "config.json"
    path.write_text(json.dumps(values), "utf-8")
    return path


def keys(values: dict[str, Any], *above: str) -> Iterator[tuple[str, ...]]:
    """The path of every key that the readers need."""
    for key, value in values.items():
        if key in UNUSED or (above and key == "model_type"):
            continue
        yield (*above, key)
        if isinstance(value, dict) and key != "codec_language_id":
            yield from keys(value, *above, key)


def parent(values: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    for key in path[:-1]:
        values = values[key]
    return values


def test_shapes_and_ids_come_from_the_file(talker: dict[str, Any], tmp_path: Path) -> None:
    config = read_talker_config(written(tmp_path, talker))
    assert (config.transformer.hidden, config.transformer.kv_heads, config.transformer.eps) == (64, 2, 1e-6)
    assert (config.predictor.transformer.hidden, config.predictor.code_groups) == (32, 16)
    assert (config.vocab, config.text_hidden, config.codec_ids.eos) == (CODES + 1_024, 48, CODES + 102)
    assert config.codec_ids.languages == LANGUAGES
    assert config.text_ids.im_end == talker["im_end_token_id"]


def test_every_needed_key_of_config_json_is_missed_by_name(talker: dict[str, Any], tmp_path: Path) -> None:
    needed = list(keys(talker))
    assert len(needed) > 40
    for path in needed:
        values = json.loads(json.dumps(talker))
        del parent(values, path)[path[-1]]
        with pytest.raises(ModelError, match=r"config\.json.*" + path[-1] + r".*missing"):
            read_talker_config(written(tmp_path, values))


def test_every_needed_key_of_the_speech_tokenizer_is_missed_by_name(codec: dict[str, Any], tmp_path: Path) -> None:
    for path in keys(codec):
        values = json.loads(json.dumps(codec))
        del parent(values, path)[path[-1]]
        with pytest.raises(ModelError, match=path[-1] + r".*missing"):
            read_codec_config(written(tmp_path, values))


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("model_type",), "qwen3_omni", "Qwen3-TTS checkpoint"),
        (("tts_model_type",), "base", "not served"),
        (("tts_model_type",), "custom_voice", "not served"),
        (("tokenizer_type",), "qwen3_tts_tokenizer_25hz", "12 Hz"),
        (("talker_config", "hidden_act"), "gelu", "SwiGLU"),
        (("talker_config", "attention_bias"), True, "bias"),
        (("talker_config", "hidden_size"), "64", "hidden_size must be of type int"),
        (("talker_config", "num_hidden_layers"), True, "num_hidden_layers must be of type int"),
        (("talker_config", "rms_norm_eps"), "1e-6", "rms_norm_eps must be a number"),
        (("talker_config", "rope_theta"), True, "rope_theta must be a number"),
        (("talker_config",), [], "talker_config must be a JSON object"),
        (("talker_config", "codec_language_id"), {"english": "2050"}, "codec_language_id must map names to integers"),
        (("talker_config", "code_predictor_config", "num_code_groups"), 8, "must agree"),
        (("talker_config", "num_hidden_layers"), 0, "num_hidden_layers"),
        (("talker_config", "hidden_size"), -64, "hidden_size"),
        (("talker_config", "num_key_value_heads"), 3, "num_key_value_heads"),
        (("talker_config", "codec_eos_token_id"), 151_673, "codec_eos_token_id"),
        (("talker_config", "codec_eos_token_id"), CODES - 1, "codec_eos_token_id"),
        (("talker_config", "codec_pad_id"), -1, "codec_pad_id"),
        (("talker_config", "codec_language_id"), {"english": 9_999}, "english"),
        (("tts_eos_token_id",), 10**6, "tts_eos_token_id"),
        (("talker_config", "vocab_size"), 512, "vocab_size"),
    ],
)
def test_a_value_that_cannot_be_served_is_named(
    talker: dict[str, Any], tmp_path: Path, path: tuple[str, ...], value: object, words: str
) -> None:
    parent(talker, path)[path[-1]] = value
    with pytest.raises(ModelError, match=words) as error:
        read_talker_config(written(tmp_path, talker))
    assert "config.json" in str(error.value)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("model_type",), "encodec", "12 Hz"),
        (("output_sample_rate",), 16_000, "24 kHz"),
        (("decode_upsample_rate",), 2_000, "1,920"),
        (("decoder_config", "upsample_rates"), [8, 5, 4], "640 samples a frame"),
        (("decoder_config", "upsample_rates"), [8, 5, 4, 3.0], "list of integers"),
        (("decoder_config", "layer_scale_initial_scale"), None, "must be a number"),
        (("decoder_config", "sliding_window"), 1, "sliding_window"),
        (("decoder_config", "num_quantizers"), 0, "num_quantizers"),
    ],
)
def test_a_codec_of_another_kind_is_named(
    codec: dict[str, Any], tmp_path: Path, path: tuple[str, ...], value: object, words: str
) -> None:
    parent(codec, path)[path[-1]] = value
    with pytest.raises(ModelError, match=words):
        read_codec_config(written(tmp_path, codec))


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b"3"])
def test_what_is_no_json_object_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"config\.json"):
        read_talker_config(path)


def test_a_missing_file_is_named_with_the_mend(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"config\.json is missing; give a complete model directory"):
        read_talker_config(tmp_path / "config.json")
