"""The one way in which the gates build their results: title, claim, need and owner always come from the policy.

This is a tool of the gates, not a gate; the gates themselves do not know of each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from qualification.policy import Policy
from qualification.results import CONFIDENCE, EXPLAINED, Comparison, Derivation, GateResult, Outcome

_NAMED = 6


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure against its limit. `bound` is its 95 % bound on the limit's side, None where there is none."""

    observed: float
    limit: float
    comparison: Comparison
    unit: str
    bound: float | None = None


def answer(
    policy: Policy,
    gate: str,
    outcome: Outcome,
    *,
    n: int,
    detail: str,
    figure: Figure | None = None,
    reason_code: str | None = None,
    derivations: Iterable[Derivation] = (),
) -> GateResult:
    """A result of `gate`; `reason_code` is due for the outcomes that need an explanation."""
    entry = policy.gate(gate)
    explained = outcome in EXPLAINED
    return GateResult(
        id=entry.id,
        title=entry.title,
        claim=entry.claim,
        outcome=outcome,
        n=n,
        detail=detail,
        observed=figure.observed if figure else None,
        limit=figure.limit if figure else None,
        bound=figure.bound if figure else None,
        confidence=CONFIDENCE if figure and figure.bound is not None else None,
        unit=figure.unit if figure else None,
        comparison=figure.comparison if figure else None,
        reason_code=reason_code if explained else None,
        needed=entry.needed if explained else None,
        owner=entry.owner if explained else None,
        derivations=tuple(derivations),
    )


def listed(names: Iterable[str]) -> str:
    """Names joined for a sentence, the first few of many."""
    every = list(names)
    rest = len(every) - _NAMED
    return ", ".join(every[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
