"""Ordinary text only: every string has an encoding, no spelling becomes a control token, bad files are named."""

from __future__ import annotations

import json
import shutil
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.checkpoint import LoadedModel
from engine.errors import ModelError
from engine.tokenizer import TextTokenizer

FILES = ("vocab.json", "merges.txt")


@pytest.fixture(scope="module")
def tokenizer(tiny_directory: Path) -> TextTokenizer:
    return TextTokenizer.from_directory(tiny_directory)


@pytest.fixture
def directory(tiny_directory: Path, tmp_path: Path) -> Path:
    for name in FILES:
        shutil.copy(tiny_directory / name, tmp_path)
    return tmp_path


@settings(deadline=None, max_examples=200)
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_every_string_comes_back_in_composed_form(tokenizer: TextTokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == unicodedata.normalize("NFC", text)


def test_merges_apply(tokenizer: TextTokenizer) -> None:
    assert len(tokenizer.encode("assistant")) == 1
    assert len(tokenizer.encode("assist")) == 1
    assert len(tokenizer.encode("tnatsissa")) == 9


@pytest.mark.parametrize("spelling", ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<tts_pad>", "<tts_eos>"])
def test_control_spellings_stay_text(tokenizer: TextTokenizer, tiny_model: LoadedModel, spelling: str) -> None:
    ids = tokenizer.encode(f"a{spelling}b")
    text = tiny_model.talker.config.text_ids
    control = {text.im_start, text.im_end, text.tts_pad, text.tts_bos, text.tts_eos}
    assert not control & set(ids)
    assert tokenizer.decode(ids) == f"a{spelling}b"


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(directory: Path, name: str) -> None:
    (directory / name).unlink()
    with pytest.raises(ModelError, match=rf"{name} is missing"):
        TextTokenizer.from_directory(directory)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("vocab.json", b"{"),
        ("vocab.json", b'["a"]'),
        ("vocab.json", b'{"a": "b"}'),
        ("merges.txt", b"one two three\n"),
        ("merges.txt", b"alone\n"),
        ("merges.txt", b"not there\n"),
        ("merges.txt", b"\xff\xff \xff\n"),
    ],
)
def test_a_damaged_file_is_named(directory: Path, name: str, content: bytes) -> None:
    (directory / name).write_bytes(content)
    with pytest.raises(ModelError, match=name.replace(".", r"\.")):
        TextTokenizer.from_directory(directory)


def test_a_vocabulary_without_every_byte_is_refused(directory: Path) -> None:
    """Text with such a byte would silently lose it."""
    path = directory / "vocab.json"
    vocab = json.loads(path.read_bytes())
    del vocab["Ġ"]
    path.write_text(json.dumps(vocab), "utf-8")
    with pytest.raises(ModelError, match=r"vocab\.json has no token for 1 of the 256 bytes"):
        TextTokenizer.from_directory(directory)


def test_it_knows_its_largest_id(directory: Path) -> None:
    vocab = json.loads((directory / "vocab.json").read_bytes())
    assert TextTokenizer.from_directory(directory).largest_id == max(vocab.values())
