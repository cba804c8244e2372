"""The stream contract looked at again from the packets, and reproducibility of equal requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from qualification.results import Outcome
from tests.qualification.gates.evidence import Changed, fail

B1 = "samples/b1.jsonl"
REPEAT = "samples/repeat.jsonl"


def first(record: dict[str, Any]) -> bool:
    return bool(record["phase"] == "measure" and record["index"] == 0)


def test_the_good_bundle_passes(tmp_path: Path) -> None:
    changed = Changed(tmp_path)
    assert changed.answer("wire.stream-contract").outcome is Outcome.PASSED
    answer = changed.answer("wire.reproducibility")
    assert answer.outcome is Outcome.PASSED
    assert "also sent beside others" in answer.detail


def edit(**values: Any) -> Any:
    return lambda record: record["packets"][1].update(values)


FAULTS = {
    "gap": (edit(first_sample=3_840), "position"),
    "sequence": (edit(sequence=2), "position"),
    "too-many-frames": (edit(frames=5, samples=9_600, bytes=19_200), "5 frames"),
    "odd-size": (edit(bytes=11_522), "size"),
    "not-final": (edit(final=False), "final mark"),
    "seed": (lambda record: record.update(echoed_seed=1), "echoed"),
    "stream-error": (lambda record: fail(record, "stream_error", "bad_boundary"), "bad_boundary"),
    "fat-first-packet": (
        lambda record: record["packets"][0].update(frames=2, samples=3_840, bytes=7_680), "packet 0 has 2 frames"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("phase", ["measure", "warmup"])
def test_each_broken_rule_fails(tmp_path: Path, name: str, phase: str) -> None:
    change, words = FAULTS[name]
    changed = Changed(tmp_path).records(B1, change, lambda r: r["phase"] == phase and r["index"] == 0)
    answer = changed.answer("wire.stream-contract")
    assert answer.outcome is Outcome.FAILED
    assert words in answer.detail


def test_a_refusal_breaks_no_rule_of_a_stream(tmp_path: Path) -> None:
    changed = Changed(tmp_path).records(B1, lambda r: fail(r, "refused", "capacity_exhausted"), first)
    assert changed.answer("wire.stream-contract").outcome is Outcome.PASSED


def test_without_a_success_nothing_is_claimed(tmp_path: Path) -> None:
    changed = Changed(tmp_path)
    for path in (changed.root / "samples").glob("*.jsonl"):
        changed.records(f"samples/{path.name}", lambda r: fail(r, "refused", "capacity_exhausted"))
    for gate in ("wire.stream-contract", "wire.reproducibility"):
        answer = changed.answer(gate)
        assert (answer.outcome, answer.n) == (Outcome.NOT_PERFORMED, 0)


def test_other_samples_for_an_equal_request_fail(tmp_path: Path) -> None:
    changed = Changed(tmp_path).records(REPEAT, lambda r: r.update(pcm_sha256="ab" * 32), first)
    answer = changed.answer("wire.reproducibility")
    assert answer.outcome is Outcome.FAILED
    assert "bench-one-en" in answer.detail


def test_a_batch_that_changes_samples_is_said_and_decides_nothing(tmp_path: Path) -> None:
    changed = Changed(tmp_path).records("samples/b6.jsonl", lambda r: r.update(pcm_sha256="cd" * 32), first)
    answer = changed.answer("wire.reproducibility")
    assert answer.outcome is Outcome.PASSED
    assert "1 gave other samples there" in answer.detail
