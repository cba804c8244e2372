"""How close together samples lie over a stretch of time. Gate, summary and verifier all count with this."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise


def around(moments: Sequence[int], start: int, end: int) -> range:
    """Indexes of the ordered `moments` that enclose `start`..`end`: those inside, and one on either side if there is
    one. A counter's difference over them leaves nothing of the stretch out."""
    first, last = bisect_right(moments, start) - 1, bisect_left(moments, end)
    return range(max(0, first), min(len(moments), last + 1))


def gaps(moments: Sequence[int], start: int, end: int) -> list[int]:
    """Lengths between neighbours of the ordered `moments` over `start`..`end`.

    Where nothing encloses the stretch, its own edge counts as a neighbour: what was not sampled is a gap.
    """
    inside = [moments[index] for index in around(moments, start, end)]
    left = [] if inside and inside[0] <= start else [start]
    right = [] if inside and inside[-1] >= end else [end]
    return [after - before for before, after in pairwise([*left, *inside, *right])]
