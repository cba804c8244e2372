"""Every gate of the policy exactly once, whatever the gates do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from qualification.errors import BundleError
from qualification.evaluation import evaluate_all
from qualification.evidence_view import EvidenceView
from qualification.policy import Policy, load_policy
from qualification.results import GateResult, Outcome
from qualification.tamper.good import Good


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Fake:
    id: str
    run: Callable[[], GateResult]

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult:
        return self.run()


def _passed() -> GateResult:
    return GateResult(id="x", title="own title", claim="own claim", outcome=Outcome.PASSED, n=1, detail="D.")


def _raise(error: Exception) -> Callable[[], GateResult]:
    def run() -> GateResult:
        raise error

    return run


def test_one_result_a_gate_in_the_order_of_the_policy(good_bundle: Good) -> None:
    policy = load_policy()
    gate = _Fake(id="eos.rate", run=_passed)
    results = evaluate_all(EvidenceView(good_bundle.root), policy, {"eos.rate": gate, "own.gate": gate})
    assert [result.id for result in results] == [entry.id for entry in policy.gates]
    by_id = {result.id: result for result in results}
    assert by_id["eos.rate"].outcome is Outcome.PASSED
    assert by_id["eos.rate"].title == policy.gate("eos.rate").title
    others = {result.outcome for result in results if result.id != "eos.rate"}
    assert others == {Outcome.NOT_PERFORMED}
    assert by_id["provenance"].needed == policy.gate("provenance").needed


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (BundleError("samples/b1.jsonl: gone"), "samples/b1.jsonl: gone"),
        (KeyError("x"), "KeyError"),
        (ZeroDivisionError("float division"), "ZeroDivisionError"),
        (FileNotFoundError("/some/absolute/path"), "FileNotFoundError"),
    ],
)
def test_a_gate_that_raises_is_an_error_without_the_machine_in_it(
    good_bundle: Good, error: Exception, detail: str
) -> None:
    gate = _Fake(id="eos.rate", run=_raise(error))
    results = evaluate_all(EvidenceView(good_bundle.root), load_policy(), {"eos.rate": gate})
    found = next(result for result in results if result.id == "eos.rate")
    assert found.outcome is Outcome.ERROR
    assert found.detail == f"The gate could not be evaluated: {detail}"


def test_a_tier_excludes_a_gate_even_if_it_would_pass(good_bundle: Good) -> None:
    view = EvidenceView(good_bundle.root)
    view.run["tier"] = "shape"
    results = evaluate_all(view, load_policy(), {"eos.rate": _Fake(id="eos.rate", run=_passed)})
    found = next(result for result in results if result.id == "eos.rate")
    assert found.outcome is Outcome.NOT_APPLICABLE
    assert found.reason_code == "tier_excludes_it"


def test_every_word_of_an_unevaluated_gate_is_the_policys(good_bundle: Good) -> None:
    policy = load_policy()
    entry = policy.gate("eos.rate")
    words = {"id": entry.id, "title": entry.title, "claim": entry.claim, "needed": entry.needed, "owner": entry.owner}
    view = EvidenceView(good_bundle.root)
    results = {result.id: result for result in evaluate_all(view, policy, {})}
    assert results["eos.rate"] == GateResult(
        **words,
        outcome=Outcome.NOT_PERFORMED,
        n=0,
        reason_code="no_such_check",
        detail="This version of the harness has no such check.",
    )
    view.run["tier"] = "shape"
    results = {result.id: result for result in evaluate_all(view, policy, {})}
    assert results["eos.rate"] == GateResult(
        **words,
        outcome=Outcome.NOT_APPLICABLE,
        n=0,
        reason_code="tier_excludes_it",
        detail=policy.rules_for("shape").not_applicable["eos.rate"],
    )


def test_an_error_counts_nothing_and_keeps_the_policys_words(good_bundle: Good) -> None:
    policy = load_policy()
    entry = policy.gate("eos.rate")
    view = EvidenceView(good_bundle.root)
    for run, n in ((_raise(ValueError("x")), 0), (_passed, 1)):
        results = evaluate_all(view, policy, {"eos.rate": _Fake(id="eos.rate", run=run)})
        found = next(result for result in results if result.id == "eos.rate")
        assert (found.n, found.title, found.claim) == (n, entry.title, entry.claim)
