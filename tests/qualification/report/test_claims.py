"""Which claim about natural ends the report says that a run makes."""

from __future__ import annotations

from typing import Any

import pytest

from qualification.report.claims import natural_ends
from qualification.results import GateResult, Outcome

WHY = {"reason_code": "r", "needed": "n", "owner": "o"}


def gate(name: str, outcome: Outcome, **values: Any) -> GateResult:
    why = WHY if outcome in (Outcome.INCONCLUSIVE, Outcome.NOT_PERFORMED, Outcome.NOT_APPLICABLE) else {}
    return GateResult(id=name, title=name, claim="c", outcome=outcome, detail="d", **{"n": 0, **why, **values})


def coverage(outcome: Outcome = Outcome.PASSED) -> GateResult:
    return gate("eos.coverage", outcome, n=24, limit=24)


@pytest.mark.parametrize(
    ("bound", "said", "not_said"),
    [
        (gate("eos.bound", Outcome.PASSED, n=600, bound=0.004981, limit=0.005), "Claim made: a rate. At most 0.498", "tried"),
        (gate("eos.bound", Outcome.NOT_PERFORMED), "coverage of 24 languages, which by itself bounds the rate only at 11.7", "a rate."),
        (gate("eos.bound", Outcome.INCONCLUSIVE, n=600, bound=0.0079, limit=0.005), "was tried and is not shown", "Claim made: a rate"),
        (gate("eos.bound", Outcome.FAILED, n=600, bound=0.03, limit=0.005), "Claim made: coverage of 24", "Claim made: a rate"),
    ],
    ids=["rate", "coverage", "undecided", "failed"],
)  # fmt: skip
def test_the_claim_is_that_of_the_gates(bound: GateResult, said: str, not_said: str) -> None:
    sentence = natural_ends([coverage(), bound])
    assert said in sentence
    assert not_said not in sentence


def test_without_coverage_and_rate_no_claim_is_made() -> None:
    assert natural_ends([coverage(Outcome.FAILED), gate("eos.bound", Outcome.NOT_PERFORMED)]) == "No claim is made."
    failed = gate("eos.bound", Outcome.FAILED, n=600, bound=0.03, limit=0.005)
    assert natural_ends([coverage(Outcome.FAILED), failed]).startswith("No claim is made. The rate of 0.5")


def test_where_ends_mean_nothing_nothing_is_said() -> None:
    assert natural_ends([coverage(), gate("eos.bound", Outcome.NOT_APPLICABLE)]) == ""
