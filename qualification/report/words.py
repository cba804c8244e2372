"""How numbers, outcomes and languages read to people. Rounding happens here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from qualification.results import Outcome

THIN = "\u202f"  # narrow no-break space, between digits and units
MISSING = "\u2013"


@dataclass(frozen=True, kw_only=True)
class Wording:
    """An outcome in words, with a sign and a style name, so that colour is never the only cue."""

    word: str
    sign: str
    style: str


OUTCOMES: Final = {
    Outcome.PASSED: Wording(word="passed", sign="\u2713", style="passed"),
    Outcome.FAILED: Wording(word="failed", sign="\u2715", style="failed"),
    Outcome.ERROR: Wording(word="could not be evaluated", sign="!", style="error"),
    Outcome.INCONCLUSIVE: Wording(word="inconclusive", sign="?", style="inconclusive"),
    Outcome.NOT_PERFORMED: Wording(word="not performed", sign="\u25cb", style="undone"),
    Outcome.NOT_APPLICABLE: Wording(word="not applicable", sign="\u2013", style="inapplicable"),
}

TIERS: Final = {
    "release": "the pinned published weights",
    "reference": "the embedded model: it shows that engine and harness work, nothing of the published model",
    "shape": "published shapes with synthetic weights: it shows speed, nothing of speech",
    "unverified": "weights that no pin knows: it can never be qualified",
}

LANGUAGES: Final = {
    "ar": "Arabic", "cs": "Czech", "de": "German", "el": "Greek", "en": "English", "es": "Spanish", "fi": "Finnish",
    "fr": "French", "hi": "Hindi", "hu": "Hungarian", "id": "Indonesian", "it": "Italian", "ja": "Japanese",
    "ko": "Korean", "mul": "Mixed", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian",
    "ru": "Russian", "sv": "Swedish", "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip


def language_name(tag: str) -> str:
    """English name of a language of the workload; the tag itself for another one."""
    return LANGUAGES.get(tag, tag)


def figure(value: float | None, unit: str | None) -> str:
    """A number with its unit, rounded to what is worth reading; a dash for None."""
    if value is None:
        return MISSING
    if unit in ("count", "languages", "faults", "requests", None) and float(value).is_integer():
        return grouped(int(value))
    if unit == "share":
        return f"{_significant(value * 100)}{THIN}%"
    if unit == "ms" and abs(value) >= 1_000:
        return f"{_significant(value / 1_000)}{THIN}s"
    if unit == "bytes":
        return size(value)
    spelled = "" if unit in ("ratio", "count", "languages", "faults", "requests", None) else f"{THIN}{unit}"
    return f"{_significant(value)}{spelled}"


def size(value: float) -> str:
    """Bytes in decimal units."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= factor:
            return f"{_significant(value / factor)}{THIN}{unit}"
    return f"{int(value)}{THIN}B"


def seconds(value: float) -> str:
    """A duration as m:ss or s with one decimal."""
    if value >= 60:
        whole = round(value)
        return f"{whole // 60}{THIN}min {whole % 60:02d}{THIN}s"
    return f"{value:.1f}{THIN}s"


def grouped(value: int) -> str:
    """An integer with its thousands set apart."""
    return f"{value:,}".replace(",", THIN)


def plural(count: int, noun: str) -> str:
    """`1 gate`, `2 gates`."""
    return f"{grouped(count)} {noun}" + ("" if count == 1 else "s")


def _significant(value: float) -> str:
    """Three significant digits, without an exponent."""
    magnitude = abs(value)
    if magnitude == 0:
        return "0"
    decimals = 0 if magnitude >= 100 else 1 if magnitude >= 10 else 2 if magnitude >= 1 else 3
    text = f"{value:.{decimals}f}"
    if float(text) == 0:
        return f"{value:.1e}"
    return text.rstrip("0").rstrip(".") if magnitude < 10 or text.endswith(".0") else text
