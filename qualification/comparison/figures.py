"""The figures that are compared, each a cost for which less is better, from matched rounds to one estimate of B / A."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from qualification.bench.raw import RequestRecord
from qualification.comparison.bootstrap import RESAMPLES, Estimate, paired_ratio
from qualification.comparison.matching import Round
from qualification.comparison.verdicts import DIGITS
from qualification.derivation import rtf
from qualification.estimators import Row, estimate

SEED: Final = 0
Pairs = Sequence[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One cost: its name, what it is, and the pairs of values that a round has of it."""

    name: str
    title: str
    pairs: Callable[[Round], Pairs]


def estimate_of(figure: Figure, rounds: Sequence[Round], *, resamples: int = RESAMPLES) -> Estimate | None:
    """B / A over all rounds that have a pair, in six decimals, so that two machines write the same; None without any."""
    paired = [pairs for pairs in (figure.pairs(item) for item in rounds) if pairs]
    if not paired:
        return None
    a, b = ([[pair[side] for pair in pairs] for pairs in paired] for side in (0, 1))
    return _rounded(paired_ratio(a, b, seed=SEED, resamples=resamples))


def _rounded(found: Estimate) -> Estimate:
    return replace(
        found,
        ratio=round(found.ratio, DIGITS),
        low=_short(found.low),
        high=_short(found.high),
        minimum_detectable=_short(found.minimum_detectable),
    )


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)


def _per_request(value: Callable[[RequestRecord], float | None]) -> Callable[[Round], Pairs]:
    def pairs(item: Round) -> Pairs:
        return [pair for pair in _both(item, value) if min(pair) > 0]

    return pairs


def _both(item: Round, value: Callable[[RequestRecord], float | None]) -> Iterator[tuple[float, float]]:
    for a, b in item.pairs:
        of_a, of_b = value(a), value(b)
        if of_a is not None and of_b is not None:
            yield of_a, of_b


def _aggregate(item: Round) -> Pairs:
    """One pair a round: all that was in flight counts, and all audio that came of it."""
    a, b = (_scenario_rtf(records) for records in (item.a, item.b))
    return [(a, b)] if a is not None and b is not None and item.pairs else []


def _scenario_rtf(records: Sequence[RequestRecord]) -> float | None:
    rows = [
        Row(
            value=record.audio_seconds if record.ok else 0.0,
            start_ns=record.end_ns - record.wall_ns,
            end_ns=record.end_ns,
        )
        for record in records
    ]
    value = estimate("span_per_sum", rows).value
    return None if value is None else float(value)


FIGURES: Final = (
    Figure(name="rtf", title="request wall / audio duration", pairs=_per_request(rtf)),
    Figure(name="ttfa", title="time to first audio", pairs=_per_request(lambda record: record.ttfa_ns)),
    Figure(
        name="aggregate_rtf",
        title="scenario wall / audio delivered, the inverse of throughput",
        pairs=_aggregate,
    ),
)
