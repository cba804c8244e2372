"""A load profile against its limits: bounds decide, failures count, and a short count is not enough."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from qualification import paths
from qualification.results import Outcome
from tests.qualification.gates.evidence import Changed, fail

B1 = "samples/b1.jsonl"


def limit(changed: Changed, name: str, value: float | None, profile: str = "B1") -> Changed:
    def change(policy: dict[str, Any]) -> None:
        policy["tiers"]["reference"]["limits"]["bench"][profile][name] = value

    return changed.document(paths.POLICY, change)


def measured(record: dict[str, Any]) -> bool:
    return bool(record["phase"] == "measure")


def test_the_good_bundle_passes(tmp_path: Path) -> None:
    changed = Changed(tmp_path)
    for gate in ("bench.b1", "bench.b3", "bench.b6"):
        answer = changed.answer(gate)
        assert answer.outcome is Outcome.PASSED, answer.detail
        assert answer.derivations


def test_a_point_inside_with_its_bound_outside_is_inconclusive(tmp_path: Path) -> None:
    changed = Changed(tmp_path)
    walls = sorted((r.end_ns - r.t0_ns) / 1e9 / r.audio_seconds for r in changed.view.records(profile="B1"))
    limit(changed, "rtf_median_max", (walls[len(walls) // 2] + walls[-1]) / 2)
    answer = changed.answer("bench.b1")
    assert answer.outcome is Outcome.INCONCLUSIVE
    assert answer.bound is not None
    assert answer.limit is not None
    assert answer.bound > answer.limit


def test_a_point_outside_fails(tmp_path: Path) -> None:
    answer = limit(Changed(tmp_path), "rtf_median_max", 0.01).answer("bench.b1")
    assert answer.outcome is Outcome.FAILED
    assert answer.observed is not None
    assert answer.observed > 0.01


def test_the_aggregate_is_compared_as_it_is(tmp_path: Path) -> None:
    assert limit(Changed(tmp_path), "rtf_aggregate_max", 0.001, "B3").answer("bench.b3").outcome is Outcome.FAILED


def test_failures_count_against_their_limit(tmp_path: Path) -> None:
    changed = Changed(tmp_path).records(B1, fail, lambda r: measured(r) and r["index"] < 4)
    answer = changed.answer("bench.b1")
    assert answer.outcome is Outcome.FAILED
    assert "share failed" in answer.detail


def test_no_success_fails(tmp_path: Path) -> None:
    answer = Changed(tmp_path).records(B1, fail, measured).answer("bench.b1")
    assert answer.outcome is Outcome.FAILED
    assert "None of" in answer.detail


def test_too_few_successes_are_inconclusive(tmp_path: Path) -> None:
    changed = Changed(tmp_path)
    changed.document(paths.POLICY, lambda p: p["tiers"]["reference"]["counts"].update(successes_per_profile=60))
    answer = changed.answer("bench.b1")
    assert (answer.outcome, answer.reason_code) == (Outcome.INCONCLUSIVE, "counts_short")


def test_a_request_left_out_of_the_plan_is_inconclusive(tmp_path: Path) -> None:
    changed = Changed(tmp_path).without(B1, lambda r: measured(r) and r["index"] == 5)
    answer = changed.answer("bench.b1")
    assert answer.outcome is Outcome.INCONCLUSIVE
    assert "5 of 6 planned requests" in answer.detail


def test_peak_memory_over_the_limit_fails(tmp_path: Path) -> None:
    changed = Changed(tmp_path).document(
        paths.POLICY, lambda p: p["tiers"]["reference"]["limits"].update(memory_rss_peak_bytes_max=1_000_000)
    )
    answer = changed.answer("bench.b1")
    assert answer.outcome is Outcome.FAILED
    assert "peak memory" in answer.detail


def test_a_percentile_without_enough_samples_is_inconclusive(tmp_path: Path) -> None:
    answer = limit(Changed(tmp_path), "underrun_p95_ms_max", 1_000).answer("bench.b1")
    assert answer.outcome is Outcome.INCONCLUSIVE
    assert "not measurable" in answer.detail


def test_a_profile_that_was_not_run_is_not_performed(tmp_path: Path) -> None:
    changed = Changed(tmp_path)
    run = json.loads((changed.root / paths.RUN).read_bytes())
    run["profiles"] = [profile for profile in run["profiles"] if profile["name"] != "B1"]
    (changed.root / paths.RUN).write_text(json.dumps(run))
    (changed.root / B1).unlink()
    answer = changed.answer("bench.b1")
    assert (answer.outcome, answer.n, answer.reason_code) == (Outcome.NOT_PERFORMED, 0, "profile_not_run")
