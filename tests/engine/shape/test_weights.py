"""The synthetic checkpoint has the published inventory, the published ids, and says what it is."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.config import read_codec_config, read_talker_config
from engine.errors import UsageError
from engine.shape.configs import SYNTHETIC_KEY
from engine.shape.vocabulary import byte_vocabulary
from engine.shape.weights import (
    NOTICE_FILE,
    _inventory,
    _values,
    _write_tensors,
    shape_modules,
    write_shape_checkpoint,
    write_shape_files,
)
from engine.tokenizer import TextTokenizer


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write_shape_files(tmp_path, seed=7)
    return tmp_path


def test_inventory_is_the_published_one(directory: Path) -> None:
    talker, codec = shape_modules(directory)
    tensors = talker.state_dict()
    assert len(tensors) == 404
    assert sum(value.numel() for value in tensors.values()) == 1_916_676_352
    predictor = sum(v.numel() for k, v in tensors.items() if ".code_predictor." in k)
    assert predictor == 175_125_760
    stored = codec.state_dict()
    assert len(stored) == 271
    assert sum(value.numel() for value in stored.values()) == 114_323_137


def test_config_carries_the_published_ids_and_the_mark(directory: Path) -> None:
    config = read_talker_config(directory / "config.json")
    assert (config.codec_ids.eos, config.text_ids.im_start, config.vocab) == (2150, 151_644, 3072)
    assert read_codec_config(directory / "speech_tokenizer/config.json").sliding_window == 72
    for name in ("config.json", "speech_tokenizer/config.json"):
        assert json.loads((directory / name).read_text("utf-8"))[SYNTHETIC_KEY]["seed"] == 7
    assert "synthetic" in (directory / NOTICE_FILE).read_text("utf-8")


def test_tokenizer_encodes_any_text_in_the_published_id_space(directory: Path) -> None:
    tokenizer = TextTokenizer.from_directory(directory)
    assert tokenizer.encode("assistant\n") == [77_091, 198]
    assert tokenizer.encode("user") == [872]
    text = "Grüße, 你好 🎧"
    assert tokenizer.decode(tokenizer.encode(text)) == text
    vocabulary, _ = byte_vocabulary()
    assert len(set(vocabulary.values())) == len(vocabulary)
    assert max(vocabulary.values()) < 151_643


def test_values_follow_seed_and_name_alone() -> None:
    def values(name: str, seed: int) -> np.ndarray:
        return np.concatenate(list(_values(name, (3, 1000), torch.float32, seed=seed, gain=1.0)))

    first = values("a.weight", 1)
    assert np.array_equal(first, values("a.weight", 1))
    assert not np.array_equal(first, values("a.weight", 2))
    assert not np.array_equal(first, values("b.weight", 1))
    assert first.std() == pytest.approx(1000**-0.5, rel=0.05)


def test_end_of_speech_has_a_zero_row() -> None:
    values = np.concatenate(list(_values("talker.codec_head.weight", (3072, 4), torch.float32, seed=0, gain=1.0)))
    rows = values.reshape(3072, 4)
    assert not rows[2150].any()
    assert rows[2149].any()
    assert rows[2151].any()


def test_streamed_file_is_a_marked_safetensors_file(tmp_path: Path) -> None:
    module = torch.nn.Linear(8, 4)
    path = tmp_path / "file.safetensors"
    _write_tensors(path, _inventory(module, "x.", torch.bfloat16), seed=3, gain=1.0)
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        assert SYNTHETIC_KEY in file.metadata()
        assert file.get_tensor("x.weight").shape == (4, 8)
        assert file.get_tensor("x.bias").dtype is torch.bfloat16
    (length,) = struct.unpack("<Q", path.read_bytes()[:8])
    assert path.stat().st_size == 8 + length + 2 * (32 + 4)


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "something").touch()
    with pytest.raises(UsageError, match="not empty"):
        write_shape_checkpoint(tmp_path)
