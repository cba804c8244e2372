"""Pure statistics with distribution-free bounds, exact enough to be compared digit for digit.

Only additions, multiplications, divisions and correctly rounded sums are used (no `pow`, `log` or gamma from a system
library), so a verifier on another machine gets the same floats. Every bound is one-sided at 95 %.

- A quantile's upper bound is an order statistic: the smallest k with P(Binomial(n, q) <= k - 1) >= 0.95. It exists only
  if n is large enough: 5 for the median, 59 for p95, 299 for p99.
- A share's bound is Clopper-Pearson's, by bisection on the binomial distribution function.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from functools import cache

ALPHA = 0.05
MEDIAN = 0.5
P95 = 0.95
P99 = 0.99
_BISECTIONS = 60
_NEGLIGIBLE = 1e-30  # a term this small beside the mode's cannot move a sum of 64-bit floats


def median(values: Sequence[float]) -> float:
    """Middle value, or the mean of the two middle ones. Raises `ValueError` for no values."""
    ordered = _ordered(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean from a correctly rounded sum. Raises `ValueError` for no values."""
    return math.fsum(_ordered(values)) / len(values)


def quantile(values: Sequence[float], q: float) -> float:
    """The smallest value with at least a share `q` of the values at or below it (nearest rank)."""
    ordered = _ordered(values)
    rank = next(k for k in range(math.floor(q * len(ordered)), len(ordered) + 1) if k >= 1 and k >= q * len(ordered))
    return ordered[rank - 1]


def quantile_upper95(values: Sequence[float], q: float) -> float | None:
    """Upper 95 % confidence bound of the `q` quantile, or None where n is too small for one to exist."""
    rank = upper_rank(len(values), q)
    return None if rank is None else _ordered(values)[rank - 1]


@cache
def upper_rank(n: int, q: float) -> int | None:
    """Rank (from 1) of the order statistic that bounds the `q` quantile from above at 95 %, or None."""
    below = range(n)  # a rank minus one; the distribution function rises with it
    index = bisect_left(below, 1 - ALPHA, key=lambda k: binomial_cdf(k, n, q))
    return index + 1 if index < n else None


@cache
def share_upper95(events: int, n: int) -> float:
    """Clopper-Pearson upper 95 % bound of a share: the p at which `events` or fewer have probability 0.05.

    Raises:
        ValueError: n < 1 or events outside 0..n.
    """
    if n < 1 or not 0 <= events <= n:
        raise ValueError(f"a share needs 0 <= events <= n and n >= 1, got {events} of {n}")
    if events == n:
        return 1.0
    low, high = events / n, 1.0  # cdf(low) > ALPHA >= cdf(high)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if binomial_cdf(events, n, middle) > ALPHA:
            low = middle
        else:
            high = middle
    return high


def share_lower95(events: int, n: int) -> float:
    """Clopper-Pearson lower 95 % bound of a share."""
    return 1.0 - share_upper95(n - events, n)


def binomial_cdf(k: int, n: int, p: float) -> float:
    """P(X <= k) for X ~ Binomial(n, p).

    Terms are scaled to the mode's and summed from it outwards, so that nothing under- or overflows.
    """
    if k < 0:
        return 0.0
    if k >= n or p <= 0.0:
        return 1.0
    if p >= 1.0:
        return 0.0
    first, terms = _binomial_terms(n, p)
    return math.fsum(terms[: max(0, k - first + 1)]) / math.fsum(terms)


def _binomial_terms(n: int, p: float) -> tuple[int, list[float]]:
    """Probabilities relative to the mode's, of all outcomes that matter, and the first such outcome."""
    mode = min(n, math.floor((n + 1) * p))
    odds = p / (1.0 - p)
    below = [1.0]
    for i in range(mode, 0, -1):
        below.append(below[-1] * i / ((n - i + 1) * odds))
        if below[-1] < _NEGLIGIBLE:
            break
    above = [1.0]
    for i in range(mode, n):
        above.append(above[-1] * (n - i) * odds / (i + 1))
        if above[-1] < _NEGLIGIBLE:
            break
    return mode - len(below) + 1, below[:0:-1] + above


def _ordered(values: Sequence[float]) -> list[float]:
    if not values:
        raise ValueError("a statistic of nothing does not exist")
    return sorted(values)
