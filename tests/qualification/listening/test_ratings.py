"""What reviews sum up to, and how a blind order is drawn."""

from __future__ import annotations

from typing import Any

from qualification.listening import blinding
from qualification.listening.ratings import SCALES, Preferences, Reviews, summarise


def _record(reviewer: str, mode: str, *items: tuple[list[tuple[int, int]], str | None]) -> dict[str, Any]:
    """Items as ([(bundle, score), ...], preference)."""
    return {
        "reviewer": reviewer,
        "mode": mode,
        "items": [
            {
                "preference": preference,
                "clips": [
                    {"bundle": at, "path": f"{at}/{number}", "ratings": dict.fromkeys(SCALES, score)}
                    for at, score in clips
                ],
            }
            for number, (clips, preference) in enumerate(items)
        ],
    }


def test_medians_and_counts_of_this_bundle_alone() -> None:
    single = _record("a", "single", ([(0, 2)], None), ([(0, 5)], None))
    pairs = _record("b", "ab", ([(1, 4), (0, 1)], "first"), ([(0, 1), (1, 3)], "neither"), ([(0, 1), (1, 5)], "second"))
    reviews = summarise([(0, single), (1, pairs)], uncounted=1)
    assert (reviews.outcome, reviews.reviewers, reviews.clips, reviews.uncounted) == ("performed", 2, 5, 1)
    assert [rating.scale for rating in reviews.ratings] == list(SCALES)
    assert (reviews.ratings[0].n, reviews.ratings[0].median) == (5, 4.0)  # of 2, 5, 4, 3, 5
    assert reviews.ratings[0].counts == (0, 1, 1, 1, 2)
    assert reviews.preferences == Preferences(this=2, other=0, neither=1)


def test_no_review_is_not_performed() -> None:
    assert summarise([], uncounted=2) == Reviews(uncounted=2)
    assert Reviews().to_json() == {
        "outcome": "not_performed", "reviewers": 0, "clips": 0, "ratings": [], "preferences": None, "uncounted": 0,
    }  # fmt: skip


def test_the_order_is_fixed_by_the_seed_and_differs_between_seeds() -> None:
    names = [f"entry-{number}" for number in range(24)]
    orders = {blinding.order(f"{seed:032x}", names) for seed in range(20)}
    assert len(orders) == 20
    assert all(sorted(order) == sorted(names) for order in orders)
    assert blinding.order("0" * 32, names) == blinding.order("0" * 32, reversed(names))
    swaps = [blinding.swapped(f"{seed:032x}", name) for seed in range(20) for name in names]
    assert 0.4 < sum(swaps) / len(swaps) < 0.6
