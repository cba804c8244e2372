"""What counted reviews of one bundle sum up to. Ratings are ordinal: counts and medians, no means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Final

SCALES: Final = ("intelligibility", "pronunciation", "adherence", "naturalness", "artefacts")
SCORES: Final = (1, 2, 3, 4, 5)
_PLACES: Final = ("first", "second")
Positioned = tuple[int, Mapping[str, Any]]  # where the bundle stands in the record's `bundles`, and the record


@dataclass(frozen=True, kw_only=True)
class Rating:
    """One scale: `counts` says how many gave 1, 2, 3, 4 and 5."""

    scale: str
    n: int
    median: float
    counts: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Preferences:
    """Pairs in which this bundle's clip, the other's or neither was preferred."""

    this: int
    other: int
    neither: int


@dataclass(frozen=True, kw_only=True)
class Reviews:
    """Everything that listeners said of one bundle. `clips`: different clips rated; `uncounted`: layers left aside."""

    reviewers: int = 0
    clips: int = 0
    ratings: tuple[Rating, ...] = ()
    preferences: Preferences | None = None
    uncounted: int = 0

    @property
    def outcome(self) -> str:
        return "performed" if self.reviewers else "not_performed"

    def to_json(self) -> dict[str, Any]:
        """The object `reviews` of a verification."""
        document = asdict(self)
        document["ratings"] = [{**rating, "counts": list(rating["counts"])} for rating in document["ratings"]]
        return {"outcome": self.outcome, **document}

    @property
    def sentence(self) -> str:
        """One line for people; the sealed gate and verdict are said to stay."""
        left = f"; {self.uncounted} not counted" if self.uncounted else ""
        if not self.reviewers:
            return f"Listening review: not performed, as far as the given reviewer keys can tell{left}."
        medians = ", ".join(f"{rating.scale} {rating.median:g} (n = {rating.n})" for rating in self.ratings)
        return (
            f"Listening review: performed after sealing, {_plural(self.reviewers, 'reviewer')}, {_plural(self.clips, 'clip')}; medians of 1 to 5: "
            f"{medians}{left}. Gate and verdict stay as sealed."
        )


def summarise(reviews: Sequence[Positioned], uncounted: int) -> Reviews:
    """Sum up the records; an empty sequence gives a review that was not performed."""
    clips = [item["clips"][_side(item, own)] for own, record in reviews for item in record["items"]]
    return Reviews(
        reviewers=len({record["reviewer"] for _, record in reviews}),
        clips=len({clip["path"] for clip in clips}),
        ratings=tuple(_rating(scale, [clip["ratings"][scale] for clip in clips]) for scale in SCALES if clips),
        preferences=_preferences([pair for pair in reviews if pair[1]["mode"] == "ab"]),
        uncounted=uncounted,
    )


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _side(item: Mapping[str, Any], own: int) -> int:
    return next(side for side, clip in enumerate(item["clips"]) if clip["bundle"] == own)


def _rating(scale: str, scores: Sequence[int]) -> Rating:
    counts = tuple(scores.count(score) for score in SCORES)
    return Rating(scale=scale, n=len(scores), median=float(median(scores)), counts=counts)


def _preferences(reviews: Sequence[Positioned]) -> Preferences | None:
    said = [
        item["preference"] if item["preference"] == "neither" else _side(item, own) == _PLACES.index(item["preference"])
        for own, record in reviews
        for item in record["items"]
    ]
    if not said:
        return None
    return Preferences(this=said.count(True), other=said.count(False), neither=said.count("neither"))
