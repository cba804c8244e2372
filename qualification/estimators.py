"""Named pure functions from rows to one number, each with its 95 % upper bound or the reason why there is none.

A row is a value with the stretch of time that it belongs to; its group (a round of a profile, a window of telemetry)
keeps times of different measurements apart. Integers stay integers, so that counts and sizes compare exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from qualification.bench import statistics

Scalar = str | int | float
NO_ROWS: Final = "nothing_measured"
TOO_FEW: Final = "too_few_samples"
NO_BOUND: Final = "no_bound_for_this_estimator"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One value. Times in nanoseconds of the run's clock, 0 where time has no meaning."""

    value: Scalar
    group: Hashable = None
    start_ns: int = 0
    end_ns: int = 0


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number over `n` rows; `reason` is set where value or bound is missing."""

    value: int | float | None
    n: int
    upper95: float | None = None
    reason: str | None = None


Estimator = Callable[[Sequence[Row]], Estimate]


def estimate(name: str, rows: Sequence[Row]) -> Estimate:
    """Apply the estimator `name`. Without rows everything but `count`, `sum` and `unique` is null."""
    if not rows and name not in _DEFINED_FOR_NOTHING:
        return Estimate(value=None, n=0, reason=NO_ROWS)
    return ESTIMATORS[name](rows)


def numbers(rows: Sequence[Row]) -> list[int | float]:
    """The numeric values of rows. Raises `TypeError` for a text."""
    values = [row.value for row in rows]
    if any(isinstance(value, str) for value in values):
        raise TypeError("this estimator takes numbers, the field holds text")
    return values  # type: ignore[return-value]  # no str is left


def span_seconds(rows: Sequence[Row]) -> float:
    """Seconds from the first start to the last end, summed over the groups."""
    return sum(max(r.end_ns for r in group) - min(r.start_ns for r in group) for group in _groups(rows)) / 1e9


def _groups(rows: Sequence[Row]) -> list[list[Row]]:
    groups: dict[Hashable, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    return list(groups.values())


def _total(values: Sequence[int | float]) -> int | float:
    return sum(values) if all(isinstance(value, int) for value in values) else math.fsum(values)


def _unbounded(compute: Callable[[Sequence[Row]], int | float]) -> Estimator:
    def apply(rows: Sequence[Row]) -> Estimate:
        return Estimate(value=compute(rows), n=len(rows), reason=NO_BOUND)

    return apply


def _median(rows: Sequence[Row]) -> Estimate:
    values = numbers(rows)
    bound = statistics.quantile_upper95(values, statistics.MEDIAN)
    return Estimate(
        value=statistics.median(values), n=len(values), upper95=bound, reason=TOO_FEW if bound is None else None
    )


def _percentile(q: float) -> Estimator:
    """A percentile exists only together with its bound."""

    def apply(rows: Sequence[Row]) -> Estimate:
        values = numbers(rows)
        bound = statistics.quantile_upper95(values, q)
        if bound is None:
            return Estimate(value=None, n=len(values), reason=TOO_FEW)
        return Estimate(value=statistics.quantile(values, q), n=len(values), upper95=bound)

    return apply


def _share(rows: Sequence[Row]) -> Estimate:
    """Share of rows with value 1; the others are 0. Bound: Clopper-Pearson."""
    values = numbers(rows)
    if any(value not in (0, 1) for value in values):
        raise ValueError("a share is taken of 0 and 1 only")
    events = sum(1 for value in values if value == 1)
    return Estimate(value=events / len(values), n=len(values), upper95=statistics.share_upper95(events, len(values)))


def _span_per_sum(rows: Sequence[Row]) -> Estimate:
    total = _total(numbers(rows))
    if total <= 0:
        return Estimate(value=None, n=len(rows), reason=NO_ROWS)
    return Estimate(value=span_seconds(rows) / total, n=len(rows), reason=NO_BOUND)


def _sum_per_span(rows: Sequence[Row]) -> Estimate:
    span = span_seconds(rows)
    if span <= 0:
        return Estimate(value=None, n=len(rows), reason=NO_ROWS)
    return Estimate(value=_total(numbers(rows)) / span, n=len(rows), reason=NO_BOUND)


def _integral(rows: Sequence[Row]) -> float:
    """Trapezoids of value over seconds, within each group in order of time."""
    areas = []
    for group in _groups(rows):
        ordered = sorted(group, key=lambda row: row.start_ns)
        for left, right in pairwise(ordered):
            low, high = numbers((left, right))
            areas.append((low + high) / 2 * (right.start_ns - left.start_ns) / 1e9)
    return math.fsum(areas)


def _time_mean(rows: Sequence[Row]) -> Estimate:
    span = span_seconds(rows)
    if span <= 0:
        return Estimate(value=None, n=len(rows), reason=TOO_FEW)
    return Estimate(value=_integral(rows) / span, n=len(rows), reason=NO_BOUND)


def _increase(rows: Sequence[Row]) -> Estimate:
    """Growth of a counter from the first to the last row of each group; a single row of a group shows no growth."""
    growth = []
    for group in _groups(rows):
        if len(group) < 2:
            return Estimate(value=None, n=len(rows), reason=TOO_FEW)
        first, last = numbers((min(group, key=lambda r: r.start_ns), max(group, key=lambda r: r.start_ns)))
        growth.append(last - first)
    return Estimate(value=_total(growth), n=len(rows), reason=NO_BOUND)


def _increase_per_span(rows: Sequence[Row]) -> Estimate:
    """Growth of counters over the time that they were watched; counters that ran side by side are added."""
    grown = _increase(rows)
    times = {(row.start_ns, row.end_ns) for row in rows}
    if grown.value is None or len(times) < 2:
        return Estimate(value=None, n=len(rows), reason=TOO_FEW)
    return Estimate(value=grown.value / _watched_seconds(rows), n=len(rows), reason=NO_BOUND)


def _watched_seconds(rows: Sequence[Row]) -> float:
    """Seconds of the union of the groups' stretches."""
    total, reached = 0, None
    for start, end in sorted((min(r.start_ns for r in g), max(r.end_ns for r in g)) for g in _groups(rows)):
        begin = start if reached is None else max(start, reached)
        total += max(0, end - begin)
        reached = end if reached is None else max(reached, end)
    return total / 1e9


ESTIMATORS: Final[Mapping[str, Estimator]] = {
    "count": _unbounded(len),
    "sum": _unbounded(lambda rows: _total(numbers(rows))),
    "unique": _unbounded(lambda rows: len({row.value for row in rows})),
    "min": _unbounded(lambda rows: min(numbers(rows))),
    "max": _unbounded(lambda rows: max(numbers(rows))),
    "mean": _unbounded(lambda rows: statistics.mean(numbers(rows))),
    "median": _median,
    "p95": _percentile(statistics.P95),
    "p99": _percentile(statistics.P99),
    "share": _share,
    "span": _unbounded(span_seconds),
    "span_per_sum": _span_per_sum,
    "sum_per_span": _sum_per_span,
    "integral": _unbounded(_integral),
    "time_mean": _time_mean,
    "increase": _increase,
    "increase_per_span": _increase_per_span,
}
_DEFINED_FOR_NOTHING: Final = frozenset({"count", "sum", "unique"})
