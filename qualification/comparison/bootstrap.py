"""The effect of B against A as one ratio with a 95 % interval: a paired bootstrap that draws whole rounds.

Requests of one round share the machine's mood, so a round is the unit that is drawn, never a request. The effect is the
geometric mean of the pairs' ratios, first within each round and then over the rounds: exchanging A and B inverts it
exactly, and no round weighs more than another.

With few rounds a plain percentile interval is too narrow. Its levels are widened (Hesterberg 2015, "What Teachers Should
Know About the Bootstrap", section 5.3) as far as Student's t and the bootstrap's own bias of (n - 1) / n ask. The tests
check the coverage on simulated rounds. Pure: the same arguments give the same estimate.

Not covered: differences of the rounds that both subjects share in one direction only, such as a machine that warms up
while all of A runs before all of B. Only an order that alternates keeps that out of the effect.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

CONFIDENCE: Final = 0.95
POWER: Final = 0.8
RESAMPLES: Final = 10_000
_BISECTIONS: Final = 80

Rounds = Sequence[Sequence[float]]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """B / A over matched pairs.

    Attributes:
        ratio: geometric mean of the pairs' ratios, each round weighing the same.
        low, high: 95 % interval of `ratio`; None with fewer than two rounds.
        minimum_detectable: least relative change (0.03: 3 %) that a design of this many rounds and this noise calls a
            difference with 80 % power; None with fewer than two rounds.
        rounds, pairs: how many of each were compared.
    """

    ratio: float
    low: float | None
    high: float | None
    minimum_detectable: float | None
    rounds: int
    pairs: int

    def inverted(self) -> Estimate:
        """A / B."""
        return Estimate(
            ratio=1 / self.ratio,
            low=None if self.high is None else 1 / self.high,
            high=None if self.low is None else 1 / self.low,
            minimum_detectable=self.minimum_detectable,
            rounds=self.rounds,
            pairs=self.pairs,
        )


def paired_ratio(a: Rounds, b: Rounds, *, seed: int, resamples: int = RESAMPLES) -> Estimate:
    """Estimate B / A.

    Args:
        a, b: one sequence a round, positive values of any one unit; `a[r][i]` and `b[r][i]` are a pair.
        seed: of the draws; the same seed gives the same interval.

    Raises:
        ValueError: no round, an empty round, rounds or pairs that do not match, a value that is not positive and finite.
    """
    logs = _log_ratios(a, b)  # [rounds]
    pairs = sum(len(values) for values in a)
    centre = float(np.mean(logs))
    if len(logs) < 2:
        return Estimate(
            ratio=math.exp(centre), low=None, high=None, minimum_detectable=None, rounds=len(logs), pairs=pairs
        )
    low, high = _interval(logs, seed, resamples)
    return Estimate(
        ratio=math.exp(centre),
        low=math.exp(low),
        high=math.exp(high),
        minimum_detectable=_minimum_detectable(logs),
        rounds=len(logs),
        pairs=pairs,
    )


def student_quantile(share: float, degrees: int) -> float:
    """The quantile of Student's t with `degrees` >= 1 degrees of freedom, for a share from 0.5 below 1, by bisection."""
    low, high = 0.0, 1.0
    while student_cdf(high, degrees) < share:
        high *= 2
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if student_cdf(middle, degrees) < share else (low, middle)
    return high


def student_cdf(t: float, degrees: int) -> float:
    """P(T <= t), from the finite sums for whole degrees of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(degrees))
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = degrees % 2
    term = cosine if odd else 1.0
    total = term if degrees > 1 else 0.0
    for k in range(2 + odd, degrees, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    inside = 2 / math.pi * (angle + sine * total) if odd else sine * total  # P(|T| <= t), signed
    return 0.5 + inside / 2


def _log_ratios(a: Rounds, b: Rounds) -> npt.NDArray[np.float64]:
    """Mean log ratio of each round, shape [rounds]."""
    if not a or len(a) != len(b):
        raise ValueError(f"a comparison needs the same rounds on both sides, at least one; got {len(a)} and {len(b)}")
    return np.array([_round_effect(x, y, number) for number, (x, y) in enumerate(zip(a, b, strict=True))])


def _round_effect(a: Sequence[float], b: Sequence[float], number: int) -> float:
    if not a or len(a) != len(b):
        raise ValueError(f"round {number}: needs pairs, at least one; got {len(a)} and {len(b)} values")
    if not all(math.isfinite(value) and value > 0 for value in (*a, *b)):
        raise ValueError(f"round {number}: a ratio needs positive, finite values")
    return math.fsum(math.log(y) - math.log(x) for x, y in zip(a, b, strict=True)) / len(a)


def _interval(logs: npt.NDArray[np.float64], seed: int, resamples: int) -> tuple[float, float]:
    """Low and high end of the mean of `logs`."""
    rounds = len(logs)
    drawn = np.random.default_rng(seed).integers(rounds, size=(resamples, rounds))
    means = logs[drawn].mean(axis=1)  # [resamples]
    tail = _tail(rounds)
    low, high = np.quantile(means, (tail, 1 - tail))
    return float(low), float(high)


def _tail(rounds: int) -> float:
    """The share left out at each end: 2.5 %, made smaller as few rounds ask."""
    t = student_quantile(0.5 + CONFIDENCE / 2, rounds - 1)
    return NormalDist().cdf(-t * math.sqrt(rounds / (rounds - 1)))


def _minimum_detectable(logs: npt.NDArray[np.float64]) -> float:
    """From the classical power formula of a paired mean over rounds: (t for 95 % + t for the power) x standard error."""
    rounds = len(logs)
    error = float(np.std(logs, ddof=1)) / math.sqrt(rounds)
    needed = student_quantile(0.5 + CONFIDENCE / 2, rounds - 1) + student_quantile(POWER, rounds - 1)
    return math.expm1(needed * error)
