"""Does a load profile lie inside its limits, with the bound and not only with the point?

One gate a profile. It needs the whole plan (no request left out), the counts of the tier, and every limit that the
policy sets for the profile. Quantities that are totals of the scenario (aggregate RTF, peak memory) have no sampling
bound and are compared as they are. Failures stay in the share of failures; times are those of the requests that
succeeded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from qualification import paths
from qualification.derivation import evaluate
from qualification.evidence_view import EvidenceView
from qualification.gates.answers import Figure, answer
from qualification.policy import BenchLimits, Policy, TierRules
from qualification.results import Comparison, Derivation, GateResult, Outcome, decide

_SEVERITY = (Outcome.FAILED, Outcome.INCONCLUSIVE, Outcome.PASSED)


@dataclass(frozen=True, kw_only=True)
class Check:
    """One limit: what was found, against it, and the outcome by the decision rule."""

    name: str
    outcome: Outcome
    figure: Figure
    derivation: Derivation

    def __str__(self) -> str:
        bound = "" if self.figure.bound is None else f" (bound {self.figure.bound:.4g})"
        return f"{self.name} {self.figure.observed:.4g}{bound} {self.figure.comparison} {self.figure.limit:g}"


@dataclass(frozen=True, kw_only=True)
class BenchGate:
    """The gate of one profile."""

    id: str
    profile: str

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult:
        """Check completeness, counts and limits; the worst check speaks for all."""
        rules = policy.rules_for(evidence.run["tier"])
        profile = next((item for item in evidence.run["profiles"] if item["name"] == self.profile), None)
        limits = rules.limits.bench.get(self.profile)
        records = evidence.records(profile=self.profile)
        if profile is None or not records or limits is None:
            detail = f"Profile {self.profile} was not run, or the policy sets no limit for it."
            return answer(policy, self.id, Outcome.NOT_PERFORMED, n=0, detail=detail, reason_code="profile_not_run")
        shortfall = _shortfall(evidence, profile, rules)
        if not any(record.ok for record in records):
            detail = f"None of {len(records)} requests succeeded."
            return answer(policy, self.id, Outcome.FAILED, n=len(records), detail=detail)
        checks = list(_checks(evidence, profile, limits, rules.limits.memory_rss_peak_bytes_max))
        worst = min(checks, key=lambda check: _SEVERITY.index(check.outcome), default=None)
        outcome = worst.outcome if worst else Outcome.INCONCLUSIVE
        if shortfall and outcome is Outcome.PASSED:
            outcome = Outcome.INCONCLUSIVE
        detail = "; ".join([*shortfall, *(str(check) for check in checks)]) + "."
        return answer(
            policy,
            self.id,
            outcome,
            n=len(records),
            detail=detail,
            figure=worst.figure if worst else None,
            reason_code="counts_short" if shortfall else "bound_outside_limit" if worst else "no_limit",
            derivations=[check.derivation for check in checks],
        )


def _checks(
    evidence: EvidenceView, profile: Mapping[str, Any], limits: BenchLimits, memory: int | None
) -> Iterator[Check]:
    def of(name: str, limit: float | None, field: str, estimator: str, unit: str, ok: bool = True) -> Iterator[Check]:
        where = {"profile": profile["name"], "phase": "measure", **({"outcome": "ok"} if ok else {})}
        derivation = Derivation(file=profile["samples"], field=field, estimator=estimator, where=where)
        if limit is not None:
            yield _check(evidence, name, limit, unit, derivation)

    yield from of("median RTF", limits.rtf_median_max, "rtf", "median", "ratio")
    yield from of("aggregate RTF", limits.rtf_aggregate_max, "audio_s", "span_per_sum", "ratio", ok=False)
    yield from of("median TTFA, ms", limits.ttfa_median_ms_max, "ttfa_ms", "median", "ms")
    yield from of("median underrun, ms", limits.underrun_median_ms_max, "underrun_ms", "median", "ms")
    yield from of("p95 underrun, ms", limits.underrun_p95_ms_max, "underrun_ms", "p95", "ms")
    yield from of("share failed", limits.failure_rate_max, "failed", "share", "share", ok=False)
    if memory is not None and evidence.telemetry:
        where = {"profile": profile["name"], "phase": "measure"}
        derivation = Derivation(file=paths.TELEMETRY, field="rss_bytes", estimator="max", where=where)
        yield _check(evidence, "peak memory, bytes", memory, "bytes", derivation)


_TOTALS = frozenset({"span_per_sum", "max"})


def _check(evidence: EvidenceView, name: str, limit: float, unit: str, derivation: Derivation) -> Check:
    found = evaluate(derivation, evidence)
    if found.value is None:  # too few for this estimator: the limit cannot be decided
        figure = Figure(observed=0.0, limit=limit, comparison=Comparison.AT_MOST, unit=unit)
        return Check(name=f"{name} not measurable,", outcome=Outcome.INCONCLUSIVE, figure=figure, derivation=derivation)
    observed = float(found.value)
    bound = observed if derivation.estimator in _TOTALS else found.upper95
    figure = Figure(observed=observed, limit=limit, comparison=Comparison.AT_MOST, unit=unit, bound=found.upper95)
    outcome = decide(observed=observed, bound=bound, limit=limit, comparison=Comparison.AT_MOST)
    return Check(name=name, outcome=outcome, figure=figure, derivation=derivation)


def _shortfall(evidence: EvidenceView, profile: Mapping[str, Any], rules: TierRules) -> list[str]:
    """What is missing to the plan and to the tier's counts, in words."""
    name = profile["name"]
    records = evidence.records(profile=name)
    planned = len(profile["entries"]) * profile["repeats"] * profile["rounds"]
    succeeded = sum(1 for record in records if record.ok)
    where = {"profile": name, "phase": "measure"}
    span = evaluate(
        Derivation(file=profile["samples"], field="request_id", estimator="span", where=where), evidence
    ).value
    seconds = float(span or 0)
    short = []
    if len(records) < planned:
        short.append(f"{len(records)} of {planned} planned requests were sent")
    if succeeded < rules.counts.successes_per_profile:
        short.append(f"{succeeded} successes, the tier asks for {rules.counts.successes_per_profile}")
    if seconds < rules.counts.seconds_per_profile:
        short.append(f"{seconds:.1f} s measured, the tier asks for {rules.counts.seconds_per_profile:g} s")
    return short
