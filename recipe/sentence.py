"""The unit of the recipe: one sentence in one voice."""

from __future__ import annotations

from dataclasses import dataclass

from recipe.voices import Voice


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """What the model reads (`text`), what espeak-ng reads (`spoken`), in which language and voice."""

    language: str
    text: str
    spoken: str
    voice: Voice
