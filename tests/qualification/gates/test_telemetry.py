"""The gates of telemetry: one limit without an allowance, and energy from counters alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qualification import paths
from qualification.results import GateResult, Outcome
from tests.qualification.gates.evidence import Changed

MS = 1_000_000
SAMPLER = "records/sampler-01.json"


@pytest.fixture
def changed(tmp_path: Path) -> Changed:
    return Changed(tmp_path)


def middle(changed: Changed) -> int:
    """The middle of the measured phase of B1."""
    phase = next(p for p in changed.view.phases if (p["profile"], p["kind"]) == ("B1", "measure"))
    return int(phase["start_ns"] + phase["end_ns"]) // 2


def hole(changed: Changed, milliseconds: int) -> Changed:
    """No sample for so long around the middle of B1's measured phase; later samples are moved to make it exact."""
    at = middle(changed)
    lines = [json.loads(line) for line in (changed.root / paths.TELEMETRY).read_bytes().splitlines()]
    before = [line for line in lines if line["at_ns"] <= at]
    after = [line for line in lines if line["at_ns"] >= before[-1]["at_ns"] + milliseconds * MS]
    after[0]["at_ns"] = before[-1]["at_ns"] + milliseconds * MS
    (changed.root / paths.TELEMETRY).write_text("".join(f"{json.dumps(line)}\n" for line in [*before, *after]))
    return changed


def test_close_samples_pass_and_the_longest_gap_is_told(changed: Changed) -> None:
    answer = changed.answer("telemetry.spacing")
    assert (answer.outcome, answer.observed, answer.limit, answer.n) == (Outcome.PASSED, 80.0, 200.0, 6)
    assert "every 80 ms at priority -10" in answer.detail
    assert "0 are over 200 ms" in answer.detail


@pytest.mark.parametrize(("milliseconds", "outcome"), [(200, Outcome.PASSED), (201, Outcome.FAILED)])
def test_one_gap_over_the_limit_fails(changed: Changed, milliseconds: int, outcome: Outcome) -> None:
    answer = hole(changed, milliseconds).answer("telemetry.spacing")
    assert (answer.outcome, answer.observed) == (outcome, float(milliseconds))
    assert f"{int(milliseconds > 200)} are over 200 ms" in answer.detail


def test_the_limit_is_the_policys(changed: Changed) -> None:
    def stricter(policy: dict[str, Any]) -> None:
        policy["tiers"]["reference"]["limits"]["telemetry"]["gap_ms_max"] = 79

    assert changed.document(paths.POLICY, stricter).answer("telemetry.spacing").outcome is Outcome.FAILED


def test_a_phase_without_a_sample_is_one_gap(changed: Changed) -> None:
    at = middle(changed)
    answer = changed.without(paths.TELEMETRY, lambda line: line["at_ns"] > at).answer("telemetry.spacing")
    assert answer.outcome is Outcome.FAILED
    assert answer.observed is not None
    assert answer.observed > 500


def test_a_fault_of_the_sampler_fails(changed: Changed) -> None:
    fault = "The telemetry process ended with status -9 after 40 samples."
    answer = changed.document(SAMPLER, lambda d: d.update(ended="crashed", fault=fault)).answer("telemetry.spacing")
    assert answer.outcome is Outcome.FAILED
    assert answer.detail.startswith(fault)


def test_a_sampler_of_which_nothing_is_known_fails(changed: Changed) -> None:
    (changed.root / SAMPLER).unlink()
    answer = changed.answer("telemetry.spacing")
    assert answer.outcome is Outcome.FAILED
    assert "left a record" in answer.detail


def test_samples_that_do_not_show_the_subject_fail(changed: Changed) -> None:
    at = middle(changed)

    def blind(line: dict[str, Any]) -> None:
        line.update(processes=0, rss_bytes=None, pss_bytes=None, cpu_ns=None)

    answer = changed.records(paths.TELEMETRY, blind, only=lambda line: abs(line["at_ns"] - at) <= 80 * MS).answer(
        "telemetry.spacing"
    )
    assert answer.outcome is Outcome.FAILED
    assert "show no process of the subject" in answer.detail


@pytest.mark.parametrize("gate", ["telemetry.spacing", "telemetry.energy"])
def test_without_telemetry_nothing_is_performed(changed: Changed, gate: str) -> None:
    for path in (paths.TELEMETRY, SAMPLER):
        (changed.root / path).unlink()
    answer = changed.answer(gate)
    assert (answer.outcome, answer.n) == (Outcome.NOT_PERFORMED, 0)


def energy(changed: Changed, device: str = "cpu") -> GateResult:
    changed.document(paths.RUN, lambda run: run["subject"].update(device=device))
    return changed.answer("telemetry.energy")


def minute(changed: Changed, profile: str, joules: Callable[[dict[str, Any]], float]) -> float:
    """Joules a minute of audio, by hand: from the sample before the phase to the one after it."""
    lines = [json.loads(line) for line in (changed.root / paths.TELEMETRY).read_bytes().splitlines()]
    total = 0.0
    for phase in changed.view.phases:
        if (phase["profile"], phase["kind"]) == (profile, "measure"):
            first = [line for line in lines if line["at_ns"] <= phase["start_ns"]][-1]
            last = next(line for line in lines if line["at_ns"] >= phase["end_ns"])
            total += joules(last) - joules(first)
    return total / (sum(record.audio_seconds for record in changed.view.records(profile=profile)) / 60)


def test_energy_of_a_processor_run_is_the_packages_counter(changed: Changed) -> None:
    answer = energy(changed)
    assert (answer.outcome, answer.n) == (Outcome.PASSED, 3)
    expected = minute(changed, "B1", lambda line: line["package_energy_microjoules"] / 1e6)
    assert f"B1 {expected:.4g} J" in answer.detail
    assert "processor packages" in answer.detail


def test_energy_of_an_accelerator_run_is_the_accelerators_counter(changed: Changed) -> None:
    answer = energy(changed, "cuda:0")
    expected = minute(changed, "B3", lambda line: line["gpus"][0]["energy_millijoules"] / 1e3)
    assert answer.outcome is Outcome.PASSED
    assert f"B3 {expected:.4g} J" in answer.detail


def test_power_without_a_counter_is_not_energy(changed: Changed) -> None:
    def no_counter(line: dict[str, Any]) -> None:
        line["gpus"][0]["energy_millijoules"] = None

    assert changed.view.telemetry[0].gpus[0].power_milliwatts
    answer = energy(changed.records(paths.TELEMETRY, no_counter), "cuda")
    assert (answer.outcome, answer.reason_code) == (Outcome.NOT_PERFORMED, "no_energy_counter")


def test_the_reason_why_no_counter_was_read_is_told(changed: Changed) -> None:
    absent = {"zones": [], "absent": "the kernel shows no powercap directory"}
    changed.document(SAMPLER, lambda d: d["sensors"].update(package_energy=absent))
    changed.records(paths.TELEMETRY, lambda line: line.update(package_energy_microjoules=None))
    assert "the kernel shows no powercap directory" in energy(changed).detail


def test_a_profile_that_did_not_run_leaves_energy_undecided(changed: Changed) -> None:
    changed.document(paths.RUN, lambda run: run["profiles"].pop())
    answer = energy(changed)
    assert (answer.outcome, answer.n) == (Outcome.INCONCLUSIVE, 2)
    assert "Nothing for: B6." in answer.detail
