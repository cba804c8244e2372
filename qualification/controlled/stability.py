"""Was a run steady while it was measured? Its requests in four windows by their end, and a test for a trend.

The test is Mann and Kendall's, over the real-time factors in order of the ends: it asks for no distribution, and ties
lower its variance (Kendall 1975). A run counts as drifting if a trend is significant at 1 % and the last window's
median lies more than 5 % off the first's: with many requests a trend that nobody would mind is significant too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from statistics import median
from typing import Any, Final

from qualification.bench.raw import RequestRecord

WINDOWS: Final = 4
FEWEST: Final = 2 * WINDOWS
SIGNIFICANCE: Final = 0.01
DRIFT: Final = 0.05


@dataclass(frozen=True, kw_only=True)
class Stability:
    """`verdict`: `stable`, `drifting` or `too_few`. `windows`: the median RTF of each; `drift`: last over first, less 1;
    `p_value`: two-sided, of no trend. Null where there are too few requests."""

    verdict: str
    requests: int
    windows: tuple[float, ...]
    drift: float | None
    p_value: float | None

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "windows": list(self.windows)}


def stability(records: Sequence[RequestRecord]) -> Stability:
    """The test over the measured successes of one run, in any order."""
    good = sorted((r for r in records if r.ok and r.measured and r.audio_seconds), key=lambda r: (r.end_ns, r.index))
    factors = [record.wall_ns / 1e9 / record.audio_seconds for record in good]
    if len(factors) < FEWEST:
        return Stability(verdict="too_few", requests=len(factors), windows=(), drift=None, p_value=None)
    edges = [len(factors) * number // WINDOWS for number in range(WINDOWS + 1)]
    windows = tuple(median(factors[low:high]) for low, high in pairwise(edges))
    drift, p_value = windows[-1] / windows[0] - 1, trend(factors)
    drifting = p_value < SIGNIFICANCE and abs(drift) > DRIFT
    return Stability(
        verdict="drifting" if drifting else "stable",
        requests=len(factors),
        windows=windows,
        drift=drift,
        p_value=p_value,
    )


def trend(values: Sequence[float]) -> float:
    """Two-sided p-value of Mann and Kendall's test, by its normal approximation with correction for continuity."""
    n = len(values)
    score = sum((b > a) - (b < a) for at, a in enumerate(values) for b in values[at + 1 :])
    ties = sum(t * (t - 1) * (2 * t + 5) for t in Counter(values).values())
    variance = (n * (n - 1) * (2 * n + 5) - ties) / 18
    if variance == 0 or score == 0:
        return 1.0
    return math.erfc((abs(score) - 1) / math.sqrt(2 * variance))
