"""The 24 languages of the embedded model: how each is written, and which espeak-ng voice reads it.

The first ten have a language id in the published model; the others are reached through `auto` alone. `limit` bounds a
training
sentence in characters so that one utterance stays below about fourteen seconds. Language codes are those of `wordfreq`.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.contract import AUTO


@dataclass(frozen=True, kw_only=True)
class Language:
    """One language. `letters` is a character class of the `regex` package, `glue` the chance that two words join
    without a space."""

    code: str
    field: str
    voice: str
    letters: str
    limit: int = 145
    glue: float = 0.0
    comma: str = ", "
    ends: tuple[str, ...] = (".", ".", ".", ".", "?", "!")
    capitals: float = 0.05
    elisions: tuple[str, ...] = ()

    @property
    def explicit(self) -> bool:
        """Whether the published model has an id for this language."""
        return self.field != AUTO


LATIN, CYRILLIC = r"\p{Latin}", r"\p{Cyrillic}"
IDEOGRAPHIC_ENDS = ("。", "。", "。", "。", "？", "！")

LANGUAGES = (
    Language(
        code="zh", field="chinese", voice="cmn", letters=r"\p{Han}", limit=44, glue=1.0, comma="，",
        ends=IDEOGRAPHIC_ENDS
    ),
    Language(code="en", field="english", voice="en-us", letters=LATIN),
    Language(
        code="ja", field="japanese", voice="ja", letters=r"\p{Han}\p{Hiragana}\p{Katakana}ー", limit=60, glue=1.0,
        comma="、", ends=IDEOGRAPHIC_ENDS,
    ),
    Language(code="ko", field="korean", voice="ko", letters=r"\p{Hangul}", limit=66, glue=0.4),
    Language(code="de", field="german", voice="de", letters=LATIN, capitals=0.35),
    Language(code="fr", field="french", voice="fr", letters=LATIN, elisions=("l'", "d'", "qu'", "s'")),
    Language(code="ru", field="russian", voice="ru", letters=CYRILLIC),
    Language(code="pt", field="portuguese", voice="pt-br", letters=LATIN),
    Language(code="es", field="spanish", voice="es", letters=LATIN),
    Language(code="it", field="italian", voice="it", letters=LATIN, elisions=("l'", "dell'", "un'", "all'")),
    Language(code="tr", field=AUTO, voice="tr", letters=LATIN),
    Language(code="nl", field=AUTO, voice="nl", letters=LATIN),
    Language(code="pl", field=AUTO, voice="pl", letters=LATIN),
    Language(code="sv", field=AUTO, voice="sv", letters=LATIN),
    Language(code="cs", field=AUTO, voice="cs", letters=LATIN),
    Language(code="el", field=AUTO, voice="el", letters=r"\p{Greek}", ends=(".", ".", ".", ".", ";", "!")),
    Language(code="ar", field=AUTO, voice="ar", letters=r"\p{Arabic}", comma="، ", ends=(".", ".", ".", ".", "؟", "!")),
    Language(code="hi", field=AUTO, voice="hi", letters=r"\p{Devanagari}", ends=("।", "।", "।", "।", "?", "!")),
    Language(code="id", field=AUTO, voice="id", letters=LATIN),
    Language(code="vi", field=AUTO, voice="vi", letters=LATIN, limit=130),
    Language(code="uk", field=AUTO, voice="uk", letters=CYRILLIC),
    Language(code="fi", field=AUTO, voice="fi", letters=LATIN),
    Language(code="hu", field=AUTO, voice="hu", letters=LATIN),
    Language(code="ro", field=AUTO, voice="ro", letters=LATIN),
)  # fmt: skip

BY_CODE = {language.code: language for language in LANGUAGES}
