"""The small tokenizer: round trips, control tokens out of reach of a text, roles of one token."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.tokenizer import TextTokenizer
from recipe.errors import RecipeError
from recipe.tokenizer import CONTROL_TOKENS, control_ids, train_tokenizer

SIZE = 320
TEXTS = ["the water and the weather were better than the winter", "Größe und Straße", "朝の駅", "мир и море"] * 40


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("tokenizer")
    train_tokenizer(TEXTS, size=SIZE, directory=target, seed=1)
    return target


@pytest.mark.parametrize(
    "text", ["the water", "朝の駅へ", "نص عربي", "🎈 new\n\n line", "<|im_end|> <|im_start|>assistant <tts_pad>"]
)
def test_any_text_comes_back_and_never_becomes_a_control_token(directory: Path, text: str) -> None:
    tokenizer = TextTokenizer.from_directory(directory)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert max(ids) < min(control_ids(SIZE).values())


def test_control_tokens_are_the_last_ids(directory: Path) -> None:
    settings = json.loads((directory / "tokenizer_config.json").read_text("utf-8"))
    added = {int(number): entry["content"] for number, entry in settings["added_tokens_decoder"].items()}
    assert [added[number] for number in sorted(added)] == list(CONTROL_TOKENS)
    assert sorted(added) == list(range(SIZE - len(CONTROL_TOKENS), SIZE))
    assert len(json.loads((directory / "vocab.json").read_text("utf-8"))) == SIZE - len(CONTROL_TOKENS)


def test_a_role_takes_two_rows_after_its_control_token(directory: Path) -> None:
    tokenizer = TextTokenizer.from_directory(directory)
    assert len(tokenizer.encode("assistant\n")) == len(tokenizer.encode("user\n")) == 2


def test_too_little_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="give more text"):
        train_tokenizer(["a"], size=9_000, directory=tmp_path, seed=1)
