"""Checks, limits, pinned models and ranges of the audio review: data, in one file, copied into each record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from qualification import schema
from qualification.audio_review.models import ModelPin
from qualification.errors import InputError
from qualification.paths import data_file
from qualification.policy import GateEntry

FILE: Final = "audio-review.json"
SCHEMA: Final = "audio-review-policy"
VOICE: Final = "voice"
DNSMOS: Final = "dnsmos"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one utterance or of all; levels are shares of full scale, times seconds, loudness LUFS.

    Attributes:
        silence_rms: a 20 ms window below it is silent.
        similarity_max: of two stretches of 0.6 s; click_score_max: of one border; border_share_max: of borders that score
            beyond 95 % of the controls, 5 % being chance.
        drift_max: of the median overall DNSMOS from its reference, either way.
        clean_error_max: a recogniser that errs more on clean speech decides nothing; error_margin: what speech may add.
    """

    silence_rms: float
    peak_min: float
    clipped_fraction_max: float
    clipped_run_max: int
    offset_max: float
    leading_silence_max: float
    trailing_silence_max: float
    pause_max: float
    loudness_min: float
    loudness_max: float
    voice_probability: float
    voice_share_min: float
    similarity_max: float
    click_score_max: float
    border_share_max: float
    drift_max: float
    clean_error_max: float
    error_margin: float


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Spoken characters a second that are plausible in a language, and where the range comes from."""

    language: str
    low: float
    high: float
    source: str


@dataclass(frozen=True, kw_only=True)
class Reference:
    """Median overall DNSMOS of a pinned subject, measured before over `n` utterances."""

    subject: str
    overall_median: float
    n: int
    source: str


@dataclass(frozen=True, kw_only=True)
class ReviewPolicy:
    """A checked policy and the document that it came from."""

    checks: tuple[GateEntry, ...]
    worth: Mapping[str, str]
    limits: Limits
    models: Mapping[str, ModelPin]
    pace: Mapping[str, Pace]
    references: Mapping[str, Reference]
    document: Mapping[str, Any]

    def check(self, check_id: str) -> GateEntry:
        """The check called `check_id`. Raises `InputError` where the policy has none."""
        for entry in self.checks:
            if entry.id == check_id:
                return entry
        raise InputError(f"the audio review's policy has no check {check_id!r}; name one of its checks")


def load(path: Path | None = None) -> ReviewPolicy:
    """The policy in `path`, or the one that ships with the package.

    Raises:
        InputError: not strict JSON, not of the schema, or a check listed twice; OSError where it cannot be read.
    """
    return parse(schema.load(SCHEMA, path or data_file(FILE)))


def parse(document: Mapping[str, Any]) -> ReviewPolicy:
    """Read a document that the schema has accepted. Raises `InputError` for a check that is listed twice."""
    ids = [entry["id"] for entry in document["checks"]]
    for check_id in ids:
        if ids.count(check_id) > 1:
            raise InputError(f"check {check_id} is listed twice; keep one")
    return ReviewPolicy(
        checks=tuple(GateEntry(**{key: entry[key] for key in _ENTRY}) for entry in document["checks"]),
        worth={entry["id"]: entry["worth"] for entry in document["checks"]},
        limits=Limits(**document["limits"]),
        models={item["name"]: ModelPin(**item) for item in document["models"]},
        pace={item["language"]: Pace(**item) for item in document["pace"]},
        references={item["subject"]: Reference(**item) for item in document["references"]},
        document=document,
    )


_ENTRY: Final = ("id", "title", "claim", "needed", "owner")
