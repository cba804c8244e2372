"""Texts counted and compared: characters that are spoken, and how far a transcript is from its text."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final

BY_CHARACTER: Final = frozenset({"ja", "th", "zh"})  # written without spaces between words


def spoken_characters(text: str) -> int:
    """Letters and digits of any script, composed; marks, spaces and punctuation are not counted."""
    return sum(1 for character in unicodedata.normalize("NFC", text) if unicodedata.category(character)[0] in "LN")


def units(text: str, language: str) -> tuple[str, ...]:
    """What an error rate counts: words, or characters where words are not set apart. Case and punctuation are dropped."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    kept = "".join(character if _is_part(character) else " " for character in folded)
    words = [word.strip("'") for word in kept.split() if word.strip("'")]
    return tuple("".join(words)) if language in BY_CHARACTER else tuple(words)


def edits(expected: Sequence[str], heard: Sequence[str]) -> int:
    """Least number of units to replace, add or remove (Levenshtein)."""
    row = list(range(len(heard) + 1))
    for at, unit in enumerate(expected, start=1):
        before, row[0] = row[0], at
        for place, other in enumerate(heard, start=1):
            changed = before + (unit != other)
            before = row[place]
            row[place] = min(changed, before + 1, row[place - 1] + 1)
    return row[-1]


def _is_part(character: str) -> bool:
    return character == "'" or unicodedata.category(character)[0] in "LMN"
