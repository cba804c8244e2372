"""Identity, licences, environment, source, and the gates that this version cannot perform."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from qualification import paths
from qualification.gates.absent import ABSENT_GATES
from qualification.gates.table import GATES
from qualification.policy import load_policy
from qualification.results import Outcome
from tests.qualification.gates.evidence import Changed


def test_every_gate_of_the_policy_has_a_program_and_no_other() -> None:
    assert {entry.id for entry in load_policy().gates} == set(GATES)


@pytest.mark.parametrize(
    "gate",
    ["identity.weights", "identity.config", "licences.environment", "licences.model", "environment.captured",
     "source.clean"],
)  # fmt: skip
def test_the_good_bundle_passes(tmp_path: Path, gate: str) -> None:
    answer = Changed(tmp_path).answer(gate)
    assert answer.outcome is Outcome.PASSED
    assert answer.n >= 1


@pytest.mark.parametrize(
    ("gate", "path"), [("identity.weights", "model.safetensors"), ("identity.config", "config.json")]
)
def test_another_hash_fails_whatever_the_outcome_says(tmp_path: Path, gate: str, path: str) -> None:
    def change(document: dict[str, Any]) -> None:
        next(item for item in document["files"] if item["path"] == path)["sha256"] = "0" * 63 + "1"

    assert Changed(tmp_path).document(paths.IDENTITY, change).answer(gate).outcome is Outcome.FAILED


def test_without_files_identity_is_not_performed(tmp_path: Path) -> None:
    changed = Changed(tmp_path).document(paths.IDENTITY, lambda d: d.update(files=[]))
    answer = changed.answer("identity.weights")
    assert (answer.outcome, answer.reason_code) == (Outcome.NOT_PERFORMED, "no_model_files")


@pytest.mark.parametrize("expression", ["GPL-3.0-only", None])
def test_a_licence_that_is_not_allowed_fails_whatever_the_decision_says(tmp_path: Path, expression: str | None) -> None:
    def change(document: dict[str, Any]) -> None:
        record = document["distributions"][0]
        record.update(expression=expression, decision="waived")

    answer = Changed(tmp_path).document(paths.LICENCES, change).answer("licences.environment")
    assert answer.outcome is Outcome.FAILED
    assert "example" in answer.detail


def test_a_dated_waiver_of_the_policy_is_counted_and_named(tmp_path: Path) -> None:
    def waive(policy: dict[str, Any]) -> None:
        reason = "the package is only read and never linked"
        policy["waivers"] = [
            {"gate": "licences.environment", "subject": "example", "who": "legal", "why": reason, "until": "2026-06-30"}
        ]

    def change(document: dict[str, Any]) -> None:
        document["distributions"][0].update(expression="GPL-3.0-only", decision="waived")

    changed = Changed(tmp_path).document(paths.LICENCES, change).document(paths.POLICY, waive)
    answer = changed.answer("licences.environment")
    assert answer.outcome is Outcome.PASSED
    assert "by waiver: example" in answer.detail
    changed.document(paths.LICENCES, lambda d: d.update(decided_on="2026-07-01"))
    assert changed.answer("licences.environment").outcome is Outcome.FAILED


def test_what_only_lies_beside_the_subject_is_not_judged(tmp_path: Path) -> None:
    changed = Changed(tmp_path).document(paths.LICENCES, lambda d: d["distributions"][0].update(scope="installed"))
    answer = changed.answer("licences.environment")
    assert (answer.outcome, answer.n) == (Outcome.NOT_PERFORMED, 0)


def test_a_fact_of_the_machine_that_could_not_be_read_is_inconclusive(tmp_path: Path) -> None:
    changed = Changed(tmp_path).document(paths.ENVIRONMENT, lambda d: d["machine"].update(load_average=None))
    answer = changed.answer("environment.captured")
    assert (answer.outcome, answer.reason_code) == (Outcome.INCONCLUSIVE, "facts_missing")


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        ({"dirty": True}, Outcome.FAILED),
        ({"commit": None}, Outcome.NOT_PERFORMED),
        ({"dirty": None}, Outcome.NOT_PERFORMED),
    ],
)
def test_only_a_clean_commit_is_clean(tmp_path: Path, source: dict[str, Any], outcome: Outcome) -> None:
    changed = Changed(tmp_path).document(paths.RUN, lambda d: d["source"].update(source))
    assert changed.answer("source.clean").outcome is outcome


@pytest.mark.parametrize("gate", ABSENT_GATES, ids=lambda gate: gate.id)
def test_what_cannot_be_performed_says_what_is_needed_and_who_owns_it(tmp_path: Path, gate: Any) -> None:
    answer = Changed(tmp_path).answer(gate)
    assert (answer.outcome, answer.n) == (Outcome.NOT_PERFORMED, 0)
    assert answer.reason_code
    assert answer.needed
    assert answer.owner
