"""Inside against outside: equal passes, slower fails, too few rounds decide nothing, the incomparable is named."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from qualification.gates.container_parity import PARITY, ContainerParityGate
from qualification.results import Outcome
from tests.qualification.gates.container_bundle import container_bundle
from tests.qualification.gates.evidence import Changed

GATE = ContainerParityGate()
SECOND = 1_000_000_000


def _rows(ratios: Sequence[float]) -> list[dict[str, Any]]:
    """Two requests a side and round; one second outside, `ratio` seconds inside, two seconds of audio each."""
    rows = []
    for number, ratio in enumerate(ratios):
        order = ("bare", "container") if number % 2 == 0 else ("container", "bare")
        for position, side in enumerate(order):
            for index in range(2):
                wall = ratio if side == "container" else 1.0
                rows.append(
                    {
                        "round": number, "position": position, "side": side, "index": index, "workload_id": "bench",
                        "seed": index, "outcome": "ok", "t0_ns": 0, "end_ns": round(wall * SECOND), "samples": 48_000,
                        "pcm_sha256": "a" * 64,
                    }
                )  # fmt: skip
    return rows


def _bundle(tmp_path: Path, ratios: Sequence[float], change: Callable[[list[Any]], object] = lambda _: None) -> Changed:
    changed = container_bundle(tmp_path)
    rows = _rows(ratios)
    change(rows)
    document = {
        "schema": "urn:assay:schema:parity:v1", "run_id": "20260101-000000-test", "rounds": len(ratios),
        "requests_per_round": 2, "rows": rows,
    }  # fmt: skip
    (changed.root / PARITY).write_text(json.dumps(document))
    return changed


@pytest.mark.parametrize(
    ("ratios", "outcome"),
    [
        ([1.0] * 8, Outcome.PASSED),
        ([1.01, 0.99, 1.02, 1.0, 1.02, 0.98, 1.0, 1.0], Outcome.PASSED),
        ([1.0, 1.0, 1.0, 1.0, 1.0, 1.2, 1.2, 1.2], Outcome.INCONCLUSIVE),
        ([1.1] * 8, Outcome.FAILED),
        ([1.0] * 4, Outcome.INCONCLUSIVE),
    ],
    ids=["equal", "noise", "bound outside", "slower", "too few"],
)
def test_the_ratio_decides(tmp_path: Path, ratios: list[float], outcome: Outcome) -> None:
    answer = _bundle(tmp_path, ratios).answer(GATE)
    assert answer.outcome is outcome
    assert answer.n == len(ratios)


def test_the_figures_are_recomputed_from_the_rows(tmp_path: Path) -> None:
    answer = _bundle(tmp_path, [0.9, 1.0, 1.1, 1.0, 1.0, 1.0, 1.0, 1.0]).answer(GATE)
    assert (answer.observed, answer.limit) == (1.0, 1.03)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows[0].update(outcome="timeout"), "timeout"),
        (lambda rows: rows.pop(), "missing"),
        (lambda rows: rows.append(dict(rows[0])), "doubled"),
        (lambda rows: rows[0].update(pcm_sha256="b" * 64), "other samples"),
        (lambda rows: rows[0].update(seed=99), "other samples"),
        (lambda rows: [row.update(position=1 - row["position"]) for row in rows if row["round"] == 1], "alternate"),
    ],
)
def test_what_cannot_be_compared_fails_by_name(
    tmp_path: Path, change: Callable[[list[Any]], object], words: str
) -> None:
    answer = _bundle(tmp_path, [1.0] * 8, change).answer(GATE)
    assert answer.outcome is Outcome.FAILED
    assert words in answer.detail


def test_without_a_comparison_nothing_was_performed(tmp_path: Path) -> None:
    changed = _bundle(tmp_path, [1.0] * 8)
    (changed.root / PARITY).unlink()
    assert changed.answer(GATE).reason_code == "no_comparison"
