"""Coverage and rate: counted from raw records, never mixed up, and able to fail."""

from __future__ import annotations

from pathlib import Path

from qualification.results import Outcome
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


def test_without_the_profile_nothing_is_claimed(tmp_path: Path) -> None:
    changed = Changed(tmp_path).without("samples/eos.jsonl", lambda r: r["phase"] == "measure")
    for gate in ("eos.coverage", "eos.rate"):
        answer = changed.answer(gate)
        assert (answer.outcome, answer.n, answer.reason_code) == (Outcome.NOT_PERFORMED, 0, "profile_not_run")
