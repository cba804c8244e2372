"""Words and the gate at their edges, and orders by themselves."""

from __future__ import annotations

from typing import Any

import pytest

from qualification.comparison.bootstrap import Estimate
from qualification.comparison.order import Block, Order, order_of
from qualification.comparison.verdicts import Gate, Word, gate, judge, losses, resolution, sentence


def estimate(low: float | None, high: float | None, rounds: int = 6) -> Estimate:
    ratio = 1.0 if low is None or high is None else (low * high) ** 0.5
    return Estimate(ratio=ratio, low=low, high=high, minimum_detectable=0.01, rounds=rounds, pairs=rounds)


@pytest.mark.parametrize(
    ("found", "word", "reason"),
    [
        (estimate(1.0001, 1.2), Word.WORSE, None),
        (estimate(0.8, 0.9999), Word.BETTER, None),
        (estimate(1.0, 1.05), Word.NO_DIFFERENCE, None),
        (estimate(1.0, 1.0501), Word.CANNOT_TELL, "interval_too_wide"),
        (estimate(1 / 1.05, 1.0), Word.NO_DIFFERENCE, None),
        (estimate(0.95, 1.0), Word.CANNOT_TELL, "interval_too_wide"),
        (estimate(1.0, 1.0), Word.NO_DIFFERENCE, None),
        (estimate(1.5, 1.6, rounds=5), Word.CANNOT_TELL, "too_few_rounds"),
        (estimate(1.0, 1.0, rounds=5), Word.CANNOT_TELL, "too_few_rounds"),
        (estimate(None, None, rounds=1), Word.CANNOT_TELL, "too_few_rounds"),
        (None, Word.CANNOT_TELL, "nothing_matched"),
    ],
)
def test_words_at_their_edges(found: Estimate | None, word: Word, reason: str | None) -> None:
    verdict = judge(found, within=0.05, overlapping=False)
    assert (verdict.word, verdict.reason) == (word, reason)
    assert sentence(found, verdict).startswith(word.value.replace("_", " "))


def test_runs_that_overlapped_tell_nothing() -> None:
    verdict = judge(estimate(1.5, 1.6), within=0.05, overlapping=True)
    assert (verdict.word, verdict.reason) == (Word.CANNOT_TELL, "overlapping_runs")


def test_the_margin_holds_the_interval_in_both_directions() -> None:
    assert resolution(estimate(1 / 1.04, 1.02)) == pytest.approx(0.04)
    assert resolution(estimate(1 / 1.02, 1.04)) == pytest.approx(0.04)
    with pytest.raises(ValueError, match="no interval"):
        resolution(estimate(None, None))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([estimate(0.9, 1.03)], Gate.HOLDS),
        ([estimate(0.9, 1.031)], Gate.CANNOT_TELL),
        ([estimate(1.03, 1.2)], Gate.CANNOT_TELL),
        ([estimate(1.031, 1.2)], Gate.WORSE),
        ([estimate(1.01, 1.02)], Gate.HOLDS),
        ([estimate(0.9, 0.95, rounds=5)], Gate.CANNOT_TELL),
        ([None], Gate.CANNOT_TELL),
        ([estimate(0.9, 1.0), None, estimate(1.1, 1.2)], Gate.WORSE),
    ],
)
def test_the_gate_at_its_edges(found: list[Estimate | None], expected: Gate) -> None:
    outcome, reasons = gate([("x", item, False) for item in found], 0.03, [])
    assert outcome is expected
    assert bool(reasons) == (expected is not Gate.HOLDS)


def test_what_no_figure_holds_keeps_the_gate_from_passing_and_does_not_hide_worse() -> None:
    assert gate([("x", estimate(0.9, 1.0), False)], 0.03, ["lost"]) == (Gate.CANNOT_TELL, ["lost"])
    assert gate([("x", estimate(1.1, 1.2), False)], 0.03, ["lost"])[0] is Gate.WORSE
    assert gate([("x", estimate(0.9, 1.0), True)], 0.03, [])[0] is Gate.CANNOT_TELL


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        ({"failed": (0, 0), "natural": (9, 9), "unknown": 0}, 0),
        ({"failed": (1, 1), "natural": (9, 10), "unknown": 0}, 0),
        ({"failed": (0, 1), "natural": (9, 9), "unknown": 0}, 1),
        ({"failed": (0, 0), "natural": (9, 8), "unknown": 0}, 1),
        ({"failed": (0, 0), "natural": (9, 0), "unknown": 9}, 0),
        ({"failed": (0, 2), "natural": (9, 7), "unknown": 0}, 2),
    ],
)
def test_losses(counts: dict[str, Any], told: int) -> None:
    assert len(list(losses("B1", **counts))) == told


@pytest.mark.parametrize(
    ("sequence", "order"),
    [
        ("AB", Order.ONE_AFTER_THE_OTHER),
        ("BA", Order.ONE_AFTER_THE_OTHER),
        ("AABB", Order.ONE_AFTER_THE_OTHER),
        ("ABBA", Order.ALTERNATING),
        ("ABAB", Order.ALTERNATING),
        ("ABBAABBA", Order.ALTERNATING),
        ("AABBAB", Order.MIXED),
        ("ABBBAA", Order.MIXED),
    ],
)
def test_orders(sequence: str, order: Order) -> None:
    blocks = [Block(start_ns=10 * at, end_ns=10 * at + 10, side=side) for at, side in enumerate(sequence)]
    assert order_of(blocks[::-1]) == (sequence, order)


def test_an_overlap_of_one_nanosecond_is_one() -> None:
    blocks = [Block(start_ns=0, end_ns=11, side="A"), Block(start_ns=10, end_ns=20, side="B")]
    assert order_of(blocks)[1] is Order.OVERLAPPING


def test_a_long_round_overlaps_one_that_is_not_its_neighbour() -> None:
    blocks = [
        Block(start_ns=0, end_ns=100, side="A"),
        Block(start_ns=10, end_ns=20, side="A"),
        Block(start_ns=30, end_ns=40, side="B"),
    ]
    assert order_of(blocks)[1] is Order.OVERLAPPING
