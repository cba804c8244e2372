"""A gate result: what cannot be said, and the decision rule."""

from __future__ import annotations

from typing import Any

import pytest

from qualification import schema
from qualification.errors import SchemaError
from qualification.results import Comparison, Derivation, GateResult, Outcome, decide


def _result(**values: Any) -> GateResult:
    base: dict[str, Any] = {"id": "a.b", "title": "A", "claim": "C.", "outcome": Outcome.PASSED, "n": 1, "detail": "D."}
    return GateResult(**{**base, **values})


def test_passed_with_nothing_counted_cannot_be_built_or_written() -> None:
    with pytest.raises(ValueError, match="nothing checked is not passed"):
        _result(n=0)
    document = {
        "schema": schema.urn("gates"),
        "run_id": "run-00000001",
        "commit": None,
        "image": None,
        "policy_sha256": "0" * 64,
        "results": [{**_result().to_json(), "n": 0}],
    }
    with pytest.raises(SchemaError, match="less than the minimum"):
        schema.validate("gates", document, "gates.json")


@pytest.mark.parametrize("outcome", [Outcome.INCONCLUSIVE, Outcome.NOT_PERFORMED, Outcome.NOT_APPLICABLE])
@pytest.mark.parametrize("missing", ["reason_code", "needed", "owner"])
def test_an_undecided_outcome_is_explained(outcome: Outcome, missing: str) -> None:
    explained = {"reason_code": "why", "needed": "what", "owner": "who"}
    assert _result(outcome=outcome, n=0, **explained).outcome is outcome
    with pytest.raises(ValueError, match="needs reason_code, needed and owner"):
        _result(outcome=outcome, n=0, **{**explained, missing: None})


def test_no_truth_value() -> None:
    with pytest.raises(TypeError, match=r"^a gate result has six outcomes and no truth value"):
        bool(_result())


def test_json_round_trip() -> None:
    derivation = Derivation(file="samples/b1.jsonl", field="rtf", estimator="median", where={"phase": "measure"})
    result = _result(observed=0.2, limit=0.5, bound=0.3, comparison=Comparison.AT_MOST, derivations=(derivation,))
    assert GateResult.from_json(result.to_json()) == result
    assert GateResult.from_json(_result().to_json()) == _result()


@pytest.mark.parametrize(
    ("observed", "bound", "comparison", "expected"),
    [
        (0.4, 0.5, Comparison.AT_MOST, Outcome.PASSED),
        (0.4, 0.500001, Comparison.AT_MOST, Outcome.INCONCLUSIVE),
        (0.4, None, Comparison.AT_MOST, Outcome.INCONCLUSIVE),
        (0.5, 0.5, Comparison.AT_MOST, Outcome.PASSED),
        (0.500001, 0.6, Comparison.AT_MOST, Outcome.FAILED),
        (0.6, 0.5, Comparison.AT_LEAST, Outcome.PASSED),
        (0.6, 0.4, Comparison.AT_LEAST, Outcome.INCONCLUSIVE),
        (0.4, 0.3, Comparison.AT_LEAST, Outcome.FAILED),
    ],
)
def test_decision_rule(observed: float, bound: float | None, comparison: Comparison, expected: Outcome) -> None:
    assert decide(observed=observed, bound=bound, limit=0.5, comparison=comparison) is expected
