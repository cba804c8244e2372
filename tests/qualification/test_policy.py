"""The policy as data, and the verdict that follows from results."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from qualification.errors import InputError
from qualification.gates.table import GATES
from qualification.policy import Policy, Verdict, judge, load_policy, parse_policy
from qualification.results import GateResult, Outcome

DAY = date(2026, 6, 1)


def _document() -> dict[str, Any]:
    return copy.deepcopy(dict(load_policy().document))


def _results(policy: Policy, **other: Outcome) -> list[GateResult]:
    """Every gate passed, but for those named with underscores for dots and dashes."""
    results = []
    for entry in policy.gates:
        outcome = other.get(entry.id.replace(".", "_").replace("-", "_"), Outcome.PASSED)
        results.append(
            GateResult(
                id=entry.id, title=entry.title, claim=entry.claim, outcome=outcome, n=1, detail="D.",
                reason_code="why", needed=entry.needed, owner=entry.owner,
            )
        )  # fmt: skip
    return results


def _judge(policy: Policy, tier: str = "reference", **other: Outcome) -> Verdict:
    return judge(policy, tier=tier, day=DAY, results=_results(policy, **other))


def test_qualified_only_if_every_required_gate_passed() -> None:
    policy = load_policy()
    assert _judge(policy).qualified
    for tier, rules in policy.tiers.items():
        for gate in rules.required:
            for outcome in set(Outcome) - {Outcome.PASSED}:
                verdict = _judge(policy, tier, **{gate.replace(".", "_").replace("-", "_"): outcome})
                assert verdict.outcome == "not_qualified"
                assert verdict.unmet == (gate,)
                assert gate in verdict.sentence


def test_missing_is_denied() -> None:
    policy = load_policy()
    for gate in policy.rules_for("reference").required:
        results = [result for result in _results(policy) if result.id != gate]
        verdict = judge(policy, tier="reference", day=DAY, results=results)
        assert not verdict.qualified
        assert gate in verdict.unmet
        assert gate in verdict.not_performed
    assert not judge(policy, tier="reference", day=DAY, results=[]).qualified


def test_a_gate_that_is_not_required_does_not_decide_and_is_named() -> None:
    verdict = _judge(load_policy(), provenance=Outcome.NOT_PERFORMED, sbom_complete=Outcome.FAILED)
    assert verdict.qualified
    assert verdict.not_performed == ("provenance",)
    assert "Not performed: provenance." in verdict.sentence


def test_unverified_is_never_qualified() -> None:
    verdict = _judge(load_policy(), "unverified")
    assert not verdict.qualified
    assert verdict.unmet == ()
    assert "could not be verified" in verdict.sentence


def test_a_subset_is_incomplete_whatever_it_says() -> None:
    policy = load_policy()
    subset = ("bench.b1", "bench.b3", "provenance")
    good = judge(policy, tier="reference", day=DAY, results=_results(policy), selected=subset)
    assert (good.outcome, good.qualified, good.unmet) == ("incomplete", False, ())
    assert set(good.not_selected) == {entry.id for entry in policy.gates} - set(subset)
    assert f"which can never qualify; {len(good.not_selected)} were left out." in good.sentence
    bad = judge(
        policy, tier="reference", day=DAY, results=_results(policy, bench_b3=Outcome.FAILED), selected=subset
    )  # fmt: skip
    assert (bad.outcome, bad.unmet) == ("incomplete", ("bench.b3",))
    assert _judge(policy).not_selected == ()


def _waiving(gate: str = "bench.b6", until: str = "2026-06-01", subject: str | None = None) -> Policy:
    document = _document()
    document["waivers"] = [
        {"gate": gate, "subject": subject, "who": "R. Viewer", "why": "The machine is being replaced.", "until": until}
    ]
    return parse_policy(document)


def test_a_waiver_holds_to_its_day_and_is_said() -> None:
    verdict = _judge(_waiving(), bench_b6=Outcome.FAILED)
    assert verdict.qualified
    assert "Waived: bench.b6 by R. Viewer until 2026-06-01." in verdict.sentence
    assert "bench.b6" not in verdict.passed
    assert [waiver.gate for waiver in verdict.waived] == ["bench.b6"]
    assert verdict.to_json()["waived"][0]["until"] == "2026-06-01"
    assert not _judge(_waiving(until="2026-05-31"), bench_b6=Outcome.FAILED).qualified
    assert not _judge(_waiving(subject="package"), bench_b6=Outcome.FAILED).qualified
    assert not _judge(_waiving(), bench_b3=Outcome.FAILED).qualified
    assert _judge(_waiving()).waived == ()


def test_what_may_not_be_waived() -> None:
    with pytest.raises(InputError, match=r"waiver of identity\.weights is not possible"):
        _waiving("identity.weights")
    with pytest.raises(InputError, match=r"waiver of no\.gate is not possible"):
        _waiving("no.gate")


def _duplicate(document: dict[str, Any]) -> None:
    document["gates"].append(document["gates"][0])


def _require_unknown(document: dict[str, Any]) -> None:
    document["tiers"]["shape"]["required"].append("no.gate")


def _both(document: dict[str, Any]) -> None:
    document["tiers"]["shape"]["required"].append("eos.rate")


def _protect_unknown(document: dict[str, Any]) -> None:
    document["never_waived"].append("no.gate")


def _unknown_field(document: dict[str, Any]) -> None:
    document["tiers"]["shape"]["relaxed"] = True


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_duplicate, "listed twice"),
        (_require_unknown, "which the policy does not have"),
        (_both, "requires gate eos.rate and calls it not applicable"),
        (_protect_unknown, "never_waived names gate no.gate"),
        (_unknown_field, "relaxed"),
    ],
)
def test_contradictions(change: Callable[[dict[str, Any]], None], message: str) -> None:
    document = _document()
    change(document)
    with pytest.raises(InputError, match=message):
        parse_policy(document)


def test_the_packaged_policy_and_the_gates_fit() -> None:
    policy = load_policy()
    assert set(GATES) <= {entry.id for entry in policy.gates}
    for gate in policy.rules_for("reference").required:
        assert gate in GATES
    release = policy.rules_for("release")
    assert release.counts.successes_per_profile >= 200
    assert release.counts.seconds_per_profile >= 600
    assert release.limits.eos.failure_rate_max <= 0.005
    assert release.counts.warmup_for(6) == 24
    assert release.counts.warmup_for(7) == 28
    assert release.signature_required
    assert len(policy.rules_for("reference").limits.eos.languages) == 24
    rtf = policy.rules_for("reference").limits.bench["B1"].rtf_median_max
    assert rtf is not None
    assert rtf <= 0.5
    with pytest.raises(InputError, match="no gate"):
        policy.gate("no.gate")


def test_the_whole_sentence() -> None:
    policy = load_policy()
    head = f"in tier reference under {policy.name} {policy.version}"
    count = len(policy.rules_for("reference").required)
    assert (
        _judge(policy).sentence
        == f"Qualified {head}: {count} of {count} required gates passed. Every gate was performed."
    )
    two = _judge(policy, eos_rate=Outcome.FAILED, bench_b1=Outcome.ERROR, provenance=Outcome.NOT_PERFORMED,
                 sbom_complete=Outcome.NOT_PERFORMED)  # fmt: skip
    assert two.sentence == (
        f"Not qualified {head}: {count - 2} of {count} required gates passed. "
        "Required and not passed: eos.rate, bench.b1. Not performed: sbom.complete, provenance."
    )
    assert "eos.rate" not in two.passed
    assert "provenance" not in two.passed
    assert len(two.passed) == len(policy.gates) - 4
    unverified = _judge(policy, "unverified").sentence
    assert " The weights could not be verified, so no set of gates can qualify them. " in unverified


def test_two_waivers_of_one_gate_count_it_once() -> None:
    document = _document()
    for who in ("A. Reviewer", "B. Reviewer"):
        waiver = {"gate": "bench.b6", "subject": None, "who": who, "why": "Being replaced soon.", "until": "2026-06-30"}
        document["waivers"].append(waiver)
    policy = parse_policy(document)
    count = len(policy.rules_for("reference").required)
    sentence = _judge(policy, bench_b6=Outcome.FAILED).sentence
    assert f": {count - 1} of {count} required gates passed. " in sentence
    assert "Waived: bench.b6 by A. Reviewer until 2026-06-30, bench.b6 by B. Reviewer until 2026-06-30. " in sentence


def test_everything_of_the_document_is_read(tmp_path: Path) -> None:
    policy = load_policy()
    document = policy.document
    assert (policy.name, policy.version) == (document["name"], document["version"])
    assert policy.licences_allowed == set(document["licences"]["allowed"])
    assert policy.licence_exceptions_allowed == set(document["licences"]["allowed_exceptions"])
    for tier, rules in policy.tiers.items():
        limits = document["tiers"][tier]["limits"]
        assert rules.limits.memory_rss_peak_bytes_max == limits["memory_rss_peak_bytes_max"]
    place = tmp_path / "own.json"
    place.write_bytes(b"{}")
    with pytest.raises(InputError, match=r"^own\.json: "):
        load_policy(place)
