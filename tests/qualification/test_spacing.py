"""Spacing of samples: what encloses a stretch of time, and the holes in it."""

from __future__ import annotations

import pytest

from qualification.spacing import around, gaps


@pytest.mark.parametrize(
    ("start", "end", "enclosing"),
    [(20, 40, [20, 30, 40]), (21, 39, [20, 30, 40]), (0, 15, [10, 20]), (45, 99, [40, 50]), (60, 70, [50]),
     (22, 23, [20, 30])],
)  # fmt: skip
def test_a_stretch_is_enclosed_by_its_neighbours(start: int, end: int, enclosing: list[int]) -> None:
    moments = [10, 20, 30, 40, 50]
    assert [moments[index] for index in around(moments, start, end)] == enclosing


@pytest.mark.parametrize(
    ("moments", "found"),
    [
        ([90, 150, 190, 210], [60, 40, 20]),  # enclosed: the gaps reach over the edges
        ([100, 150, 200], [50, 50]),
        ([150], [50, 50]),  # nothing outside: the edges count
        ([], [100]),
        ([20, 300], [280]),  # nothing inside
        ([20], [180]),
        ([300], [200]),
    ],
)
def test_what_was_not_sampled_is_a_gap(moments: list[int], found: list[int]) -> None:
    assert gaps(moments, 100, 200) == found
