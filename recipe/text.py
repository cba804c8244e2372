"""Licence-clean training sentences: random words of PyPI `wordfreq`, in the spelling and punctuation of each language.

Meaning does not matter to a model this small: it must learn how letters sound and when a sentence is over. Words are
drawn with
power-law weights over their rank, so that common ones are common and rare ones still occur; a share of the sentences
is short, because
there a wrong length shows first. Natural sentences are never used, so every natural sentence is held out.

Not covered: grammar, names, abbreviations, text normalisation beyond what espeak-ng does with a numeral.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import regex  # type: ignore[import-untyped]  # Unicode scripts, which `re` does not know
import wordfreq

from recipe.languages import LANGUAGES, Language
from recipe.sentence import Sentence
from recipe.voices import random_voice

VOCABULARY_WORDS = 12_000
RANK_OFFSET, RANK_POWER = 20, 0.7  # weight of rank r is (r + offset) ** -power
SHORT_SHARE, SHORT_CHARACTERS, LONG_CHARACTERS = 0.15, (3, 25), 25
COMMA_SHARE, NUMERAL_SHARE, ASIDE_SHARE, ELISION_SHARE, SHARP_S_SHARE = 0.12, 0.03, 0.02, 0.12, 0.25
ASIDES = ("; ", ": ", " – ")
LONGEST_WORD = 20
VOWELS = "aeiouyhàâéèêëîïôöûüœæ"


class WordSource:
    """Draws words of one language."""

    def __init__(self, language: Language) -> None:
        pattern = regex.compile(rf"[{language.letters}\p{{M}}]+(?:['’][{language.letters}\p{{M}}]+)?")
        ranked = wordfreq.top_n_list(language.code, VOCABULARY_WORDS)
        self.words = [
            respell(word, language) for word in ranked if len(word) <= LONGEST_WORD and pattern.fullmatch(word)
        ]
        weights = ((rank + RANK_OFFSET) ** -RANK_POWER for rank in range(len(self.words)))
        self._cumulative = _running_sum(weights)

    def draw(self, rng: random.Random) -> str:
        return rng.choices(self.words, cum_weights=self._cumulative)[0]


def respell(word: str, language: Language) -> str:
    """Undo what `wordfreq`'s case folding did to a spelling: a Greek word ends in the final form of sigma."""
    if language.code == "el" and word.endswith("σ"):
        return word[:-1] + "ς"
    return word


def compose(language: Language, source: WordSource, rng: random.Random) -> str:
    """One sentence of at most `language.limit` characters, its end mark included."""
    target = _target_length(language, rng)
    text = _capitalised(_token(language, source, rng), language)[: target - 1]
    while True:
        piece = _separator(language, rng) + _token(language, source, rng)
        if len(text) + len(piece) >= target:
            return text + rng.choice(language.ends)
        text += piece


def sentences(count: int, seed: int) -> Iterator[Sentence]:
    """`count` sentences, the languages in turn, each with a random voice. The same seed gives the same sentences."""
    rng = random.Random(seed)
    sources = {language.code: WordSource(language) for language in LANGUAGES}
    for index in range(count):
        language = LANGUAGES[index % len(LANGUAGES)]
        text = compose(language, sources[language.code], rng)
        yield Sentence(
            language=language.code, text=text, spoken=spoken_form(text, language.code), voice=random_voice(rng)
        )


def spoken_form(text: str, language: str) -> str:
    """The spelling that espeak-ng is given: kana for Japanese, whose ideographs it cannot read; otherwise the text
    itself."""
    return _kana(text) if language == "ja" else text


def _target_length(language: Language, rng: random.Random) -> int:
    low, high = SHORT_CHARACTERS if rng.random() < SHORT_SHARE else (LONG_CHARACTERS, language.limit)
    scale = min(1.0, language.limit / 120)  # dense scripts say more in a character
    return max(
        3, min(language.limit, round(rng.uniform(low * scale, high if high == language.limit else high * scale)))
    )


def _token(language: Language, source: WordSource, rng: random.Random) -> str:
    if rng.random() < NUMERAL_SHARE:
        return str(rng.randrange(10 ** rng.randint(1, 4)))
    word = source.draw(rng)
    if language.elisions and word[0] in VOWELS and rng.random() < ELISION_SHARE:
        word = rng.choice(language.elisions) + word
    if language.code == "de" and "ss" in word and rng.random() < SHARP_S_SHARE:
        word = word.replace("ss", "ß")  # case folding had turned every sharp s into ss
    return _capitalised(word, language) if rng.random() < language.capitals else word


def _capitalised(word: str, language: Language) -> str:
    first = "İ" if language.code == "tr" and word[0] == "i" else word[0].upper()
    return (first if len(first) == 1 else word[0]) + word[1:]


def _separator(language: Language, rng: random.Random) -> str:
    chance = rng.random()
    if chance < COMMA_SHARE:
        return language.comma
    if language.glue == 1.0:
        return ""
    if chance < COMMA_SHARE + ASIDE_SHARE:
        return rng.choice(ASIDES)
    return "" if rng.random() < language.glue else " "


def _running_sum(weights: Iterator[float]) -> list[float]:
    total, sums = 0.0, []
    for weight in weights:
        total += weight
        sums.append(total)
    return sums


def _kana(text: str) -> str:
    import pykakasi  # only where a Japanese sentence is read; nobody else pays for its dictionaries

    global _converter
    if _converter is None:
        _converter = pykakasi.kakasi()  # type: ignore[no-untyped-call]
    return "".join(part["hira"] for part in _converter.convert(text))


_converter: pykakasi.kakasi | None = None  # type: ignore[name-defined]  # noqa: F821  # imported on first use
