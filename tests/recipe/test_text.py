"""Sentences: limits, spelling, repeatability."""

from __future__ import annotations

import random

import pytest

from recipe.languages import BY_CODE, LANGUAGES
from recipe.text import WordSource, compose, respell, sentences, spoken_form

SAMPLED = ("zh", "de", "ja", "ko", "vi", "el")


@pytest.fixture(scope="module")
def sources() -> dict[str, WordSource]:
    return {code: WordSource(BY_CODE[code]) for code in SAMPLED}


@pytest.mark.parametrize("code", SAMPLED)
def test_a_sentence_keeps_to_its_languages_limit_and_ends_with_its_mark(
    code: str, sources: dict[str, WordSource]
) -> None:
    language, rng = BY_CODE[code], random.Random(5)
    texts = [compose(language, sources[code], rng) for _ in range(200)]
    assert max(map(len, texts)) <= language.limit
    assert all(text.endswith(language.ends) and len(text) >= 2 for text in texts)
    assert max(map(len, texts)) > 0.8 * language.limit, "long sentences must occur"
    assert min(map(len, texts)) < 0.25 * language.limit, "short sentences must occur"


def test_twenty_four_languages_of_which_ten_have_an_id() -> None:
    assert len(LANGUAGES) == len(BY_CODE) == 24
    assert sum(language.explicit for language in LANGUAGES) == 10


def test_words_are_in_the_script_of_the_language(sources: dict[str, WordSource]) -> None:
    assert all(ord(letter) > 0x2E80 for word in sources["zh"].words for letter in word)
    assert not any(letter.isascii() for word in sources["el"].words for letter in word if letter.isalpha())
    assert len(sources["de"].words) > 5_000


def test_a_greek_word_ends_in_final_sigma() -> None:
    assert respell("στισ", BY_CODE["el"]) == "στις"
    assert respell("ss", BY_CODE["de"]) == "ss"


def test_the_same_seed_gives_the_same_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "recipe.text.LANGUAGES", (BY_CODE["de"], BY_CODE["ja"])
    )  # word lists of 24 languages take seconds
    first, again = list(sentences(4, seed=9)), list(sentences(4, seed=9))
    assert first == again
    assert [item.language for item in first] == ["de", "ja", "de", "ja"]
    assert [item.text for item in sentences(4, seed=10)] != [item.text for item in first]


def test_japanese_is_spoken_from_kana_and_others_from_their_text() -> None:
    assert spoken_form("朝の駅", "ja") == "あさのえき"
    assert spoken_form("朝の駅", "zh") == "朝の駅"
