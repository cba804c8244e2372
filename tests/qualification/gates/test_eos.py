"""Coverage and rate: counted from raw records, never mixed up, and able to fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from qualification.results import GateResult, Outcome
from tests.qualification.gates.evidence import Changed, fail


def is_turkish(record: dict[str, object]) -> bool:
    return record["language"] == "tr" and record["phase"] == "measure"


def test_the_good_bundle_passes_both(tmp_path: Path) -> None:
    changed = Changed(tmp_path)
    coverage, rate = changed.answer("eos.coverage"), changed.answer("eos.rate")
    assert (coverage.outcome, coverage.observed, coverage.limit, coverage.n) == (Outcome.PASSED, 3, 3, 6)
    assert (rate.outcome, rate.observed) == (Outcome.PASSED, 0)
    assert rate.bound is not None
    assert 0.3 < rate.bound < 0.5  # 0 of 6


def test_a_language_that_never_ends_fails_coverage_by_name(tmp_path: Path) -> None:
    changed = Changed(tmp_path).records("samples/eos.jsonl", lambda r: r.update(finish_reason="length"), is_turkish)
    answer = changed.answer("eos.coverage")
    assert answer.outcome is Outcome.FAILED
    assert "tr" in answer.detail


def test_a_language_that_was_not_tried_fails_coverage(tmp_path: Path) -> None:
    answer = Changed(tmp_path).without("samples/eos.jsonl", is_turkish).answer("eos.coverage")
    assert answer.outcome is Outcome.FAILED
    assert "Not tried at all: tr" in answer.detail


def test_one_natural_end_of_two_is_coverage_and_no_rate(tmp_path: Path) -> None:
    def second(record: dict[str, object]) -> bool:
        return is_turkish(record) and record["index"] == 5

    changed = Changed(tmp_path).records("samples/eos.jsonl", lambda r: r.update(finish_reason="length"), second)
    assert changed.answer("eos.coverage").outcome is Outcome.PASSED
    rate = changed.answer("eos.rate")
    assert rate.outcome is Outcome.INCONCLUSIVE  # 1 of 6 lies inside 0.5, its bound does not
    assert rate.reason_code == "bound_outside_limit"
    assert "1 ran into the ceiling" in rate.detail


def test_a_failed_request_is_no_natural_end(tmp_path: Path) -> None:
    changed = Changed(tmp_path).records("samples/eos.jsonl", fail, lambda r: r["phase"] == "measure")
    assert changed.answer("eos.rate").outcome is Outcome.FAILED
    assert changed.answer("eos.coverage").outcome is Outcome.FAILED


def test_warm_up_does_not_count(tmp_path: Path) -> None:
    changed = Changed(tmp_path).records(
        "samples/eos.jsonl", lambda r: r.update(finish_reason="length"), lambda r: r["phase"] == "warmup"
    )
    assert changed.answer("eos.rate").observed == 0


def test_repeated_draws_bound_nothing(tmp_path: Path) -> None:
    changed = Changed(tmp_path).records(
        "samples/eos.jsonl", lambda r: r.update(seed=r["seed"] // 100 * 100), lambda r: r["phase"] == "measure"
    )
    answer = changed.answer("eos.rate")
    assert (answer.outcome, answer.reason_code) == (Outcome.INCONCLUSIVE, "draws_repeat")


class Rated:
    """The good bundle with a profile RATE made of `count` copies of its first natural end, each draw another one."""

    def __init__(self, tmp_path: Path, count: int, languages: tuple[str, ...] = ("en", "de", "tr")) -> None:
        self.changed = Changed(tmp_path)
        lines = (self.changed.root / "samples/eos.jsonl").read_bytes().splitlines()
        first = next(record for record in map(json.loads, lines) if record["phase"] == "measure")
        self.records = [
            {**first, "profile": "RATE", "index": index, "seed": index, "language": languages[index % len(languages)],
             "request_id": str(UUID(int=index + 1, version=4)), "echoed_seed": index}
            for index in range(count)
        ]  # fmt: skip

    def answer(self) -> GateResult:
        text = "".join(f"{json.dumps(record)}\n" for record in self.records)
        (self.changed.root / "samples/rate.jsonl").write_text(text)

        def add(run: dict[str, Any]) -> None:
            run["profiles"].append({**run["profiles"][0], "name": "RATE", "samples": "samples/rate.jsonl"})

        return self.changed.document("run.json", add).answer("eos.bound")


@pytest.mark.parametrize(
    ("count", "missing", "outcome"),
    [
        (598, 0, Outcome.PASSED),
        (597, 0, Outcome.INCONCLUSIVE),
        (600, 1, Outcome.INCONCLUSIVE),  # 0.17 % seen, 0.79 % is the bound
        (600, 3, Outcome.INCONCLUSIVE),
        (600, 4, Outcome.FAILED),
    ],
)
def test_the_bound_decides_the_claim_of_a_rate(tmp_path: Path, count: int, missing: int, outcome: Outcome) -> None:
    rated = Rated(tmp_path, count)
    for record in rated.records[:missing]:
        record["finish_reason"] = "length"
    answer = rated.answer()
    assert (answer.outcome, answer.n, answer.limit) == (outcome, count, 0.005)
    assert answer.observed == pytest.approx(missing / count)
    assert f"{count - missing} of {count} requests ended naturally" in answer.detail


def test_a_failure_counts_against_the_rate(tmp_path: Path) -> None:
    rated = Rated(tmp_path, 600)
    for record in rated.records[:4]:
        fail(record)
    answer = rated.answer()
    assert (answer.outcome, "4 failed" in answer.detail) == (Outcome.FAILED, True)


def test_a_draw_that_repeats_bounds_no_rate(tmp_path: Path) -> None:
    rated = Rated(tmp_path, 600)
    rated.records[7]["seed"] = rated.records[6]["seed"]
    answer = rated.answer()
    assert (answer.outcome, answer.reason_code) == (Outcome.INCONCLUSIVE, "draws_repeat")


def test_a_language_that_was_not_asked_leaves_the_rate_open(tmp_path: Path) -> None:
    answer = Rated(tmp_path, 600, languages=("en", "de")).answer()
    assert (answer.outcome, answer.reason_code) == (Outcome.INCONCLUSIVE, "languages_missing")
    assert "Not asked: tr." in answer.detail


def test_without_its_profile_no_rate_is_claimed(tmp_path: Path) -> None:
    answer = Changed(tmp_path).answer("eos.bound")
    assert (answer.outcome, answer.reason_code, "--eos-rate 600" in str(answer.needed)) == (
        Outcome.NOT_PERFORMED, "profile_not_run", True,
    )  # fmt: skip


def test_without_the_profile_nothing_is_claimed(tmp_path: Path) -> None:
    changed = Changed(tmp_path).without("samples/eos.jsonl", lambda r: r["phase"] == "measure")
    for gate in ("eos.coverage", "eos.rate"):
        answer = changed.answer(gate)
        assert (answer.outcome, answer.n, answer.reason_code) == (Outcome.NOT_PERFORMED, 0, "profile_not_run")
