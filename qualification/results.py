"""What a gate says: one of six outcomes, with the count, the figure, the limit and the reasons behind it.

A result has no truth value: `if result:` raises, because an outcome other than `passed` is not one thing called false.
`passed` with nothing counted cannot be built here and cannot be written in the schema.
Deciding which results make a verdict is the business of `policy`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Never

Scalar = str | int | float | bool | None
CONFIDENCE = 0.95


class Outcome(StrEnum):
    """The six things a gate can say."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"  # the gate itself could not be evaluated
    INCONCLUSIVE = "inconclusive"  # evaluated, and the evidence does not decide
    NOT_PERFORMED = "not_performed"
    NOT_APPLICABLE = "not_applicable"


EXPLAINED = frozenset({Outcome.INCONCLUSIVE, Outcome.NOT_PERFORMED, Outcome.NOT_APPLICABLE})


class Comparison(StrEnum):
    """On which side of the limit the observed figure must lie."""

    AT_MOST = "<="
    AT_LEAST = ">="


@dataclass(frozen=True, kw_only=True)
class Derivation:
    """Where a number comes from: rows of `file` that match `where`, their `field`, put through `estimator`."""

    file: str
    field: str
    estimator: str
    where: Mapping[str, Scalar] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class GateResult:
    """One gate's answer.

    Attributes:
        n: how many things were checked; at least 1 for `passed`.
        observed: the figure found, in `unit`; `bound` is its one-sided bound at `confidence`.
        limit: the policy's limit, compared by `comparison`.
        detail: one sentence of what was found, naming what broke.
        reason_code, needed, owner: why it was not decided, what would decide it, and who owns that.

    Raises:
        ValueError: `passed` with nothing counted, an unexplained outcome, or an explanation where none belongs.
    """

    id: str
    title: str
    claim: str
    outcome: Outcome
    n: int
    detail: str
    observed: float | None = None
    limit: float | None = None
    bound: float | None = None
    confidence: float | None = None
    unit: str | None = None
    comparison: Comparison | None = None
    reason_code: str | None = None
    needed: str | None = None
    owner: str | None = None
    derivations: tuple[Derivation, ...] = ()

    def __post_init__(self) -> None:
        if self.outcome is Outcome.PASSED and self.n < 1:
            raise ValueError(f"gate {self.id}: passed with nothing counted; nothing checked is not passed")
        if self.outcome in EXPLAINED and not (self.reason_code and self.needed and self.owner):
            raise ValueError(f"gate {self.id}: {self.outcome} needs reason_code, needed and owner")

    def __bool__(self) -> Never:
        raise TypeError("a gate result has six outcomes and no truth value; compare `.outcome`")

    def to_json(self) -> dict[str, Any]:
        """The object that `gates.json` holds."""
        document = asdict(self)
        document["outcome"] = self.outcome.value
        document["comparison"] = self.comparison.value if self.comparison else None
        document["derivations"] = [derivation_json(item) for item in self.derivations]
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> GateResult:
        """Read an object that the `gates` schema has accepted."""
        values = dict(document)
        values["outcome"] = Outcome(values["outcome"])
        values["comparison"] = Comparison(values["comparison"]) if values["comparison"] else None
        values["derivations"] = tuple(Derivation(**item) for item in values["derivations"])
        return cls(**values)


def derivation_json(derivation: Derivation) -> dict[str, Any]:
    """The JSON object of a derivation."""
    return {**asdict(derivation), "where": dict(derivation.where)}


def decide(*, observed: float, bound: float | None, limit: float, comparison: Comparison) -> Outcome:
    """The decision rule: passed only if the bound lies inside the limit.

    Point estimate inside and bound outside (or no bound, because n is too small) is inconclusive;
    point estimate outside is failed.
    """
    if not _inside(observed, limit, comparison):
        return Outcome.FAILED
    if bound is None or not _inside(bound, limit, comparison):
        return Outcome.INCONCLUSIVE
    return Outcome.PASSED


def _inside(value: float, limit: float, comparison: Comparison) -> bool:
    return value <= limit if comparison is Comparison.AT_MOST else value >= limit
