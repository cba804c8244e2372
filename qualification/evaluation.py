"""Every gate of the policy exactly once, evaluated from the files of an evidence directory.

The run writes what comes out as `gates.json`; the verifier calls the same function on the same files and compares.
A gate that raises becomes an `error` result that names the fault; a gate that the tier excludes, or that nobody has
written, fed or asked for, reads `not_applicable` or `not_performed` in the policy's words.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final, Protocol

from qualification.errors import QualificationError
from qualification.evidence_view import EvidenceView
from qualification.policy import GateEntry, Policy
from qualification.results import GateResult, Outcome

_NOT_SELECTED: Final = "The run was asked for a subset of the gates, and this one is not in it."


class Gate(Protocol):
    """One file of `qualification/gates`: a pure function of evidence and policy. It reads no other gate's result."""

    @property
    def id(self) -> str: ...

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult: ...


def evaluate_all(evidence: EvidenceView, policy: Policy, gates: Mapping[str, Gate]) -> tuple[GateResult, ...]:
    """Results in the order of the policy; title and claim are always the policy's."""
    excluded, selected = policy.rules_for(evidence.run["tier"]).not_applicable, evidence.run["gates_selected"]
    return tuple(
        _one(entry, excluded.get(entry.id), gates.get(entry.id), evidence, policy)
        if selected is None or entry.id in selected
        else not_performed(entry, reason_code="not_selected", detail=_NOT_SELECTED)
        for entry in policy.gates
    )


def not_performed(entry: GateEntry, *, reason_code: str, detail: str) -> GateResult:
    """The result of a gate that did not run; what is needed and who owns it come from the policy."""
    return _explained(entry, Outcome.NOT_PERFORMED, reason_code, detail)


def not_applicable(entry: GateEntry, *, reason_code: str, detail: str) -> GateResult:
    """The result of a gate that means nothing here."""
    return _explained(entry, Outcome.NOT_APPLICABLE, reason_code, detail)


def _one(
    entry: GateEntry, excluded: str | None, gate: Gate | None, evidence: EvidenceView, policy: Policy
) -> GateResult:
    if excluded is not None:
        return not_applicable(entry, reason_code="tier_excludes_it", detail=excluded)
    if gate is None:
        return not_performed(
            entry, reason_code="no_such_check", detail="This version of the harness has no such check."
        )
    try:
        result = gate.evaluate(evidence, policy)
    except (QualificationError, ArithmeticError, LookupError, OSError, TypeError, ValueError) as error:
        return _error(entry, error)
    return dataclasses.replace(result, id=entry.id, title=entry.title, claim=entry.claim)


def _error(entry: GateEntry, error: Exception) -> GateResult:
    # Only our own messages are repeatable: those of the system and of Python differ by machine and version.
    reason = str(error) if isinstance(error, QualificationError) else type(error).__name__
    return GateResult(
        id=entry.id,
        title=entry.title,
        claim=entry.claim,
        outcome=Outcome.ERROR,
        n=0,
        detail=f"The gate could not be evaluated: {reason}",
    )


def _explained(entry: GateEntry, outcome: Outcome, reason_code: str, detail: str) -> GateResult:
    return GateResult(
        id=entry.id,
        title=entry.title,
        claim=entry.claim,
        outcome=outcome,
        n=0,
        detail=detail,
        reason_code=reason_code,
        needed=entry.needed,
        owner=entry.owner,
    )
