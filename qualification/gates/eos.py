"""Do utterances end by themselves? Claims that must not be mixed up.

Coverage: each language of the policy ended naturally at least once; it bounds no rate. Rate: the share of requests
that did not end naturally, with its 95 % bound, against the tier's limit; both count raw records of the profile EOS.
Bound: the claim of a small rate (0.5 %), from the many requests of the profile RATE, which must reach every language.
`stop` is a natural end, the ceiling and every failure are not. Of a subject that does not tell how speech ended no such claim
can be made, and no end is made up. Ending is not the same as being intelligible.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from qualification.bench.raw import RequestRecord
from qualification.derivation import evaluate
from qualification.evidence_view import EvidenceView
from qualification.gates.answers import Figure, answer, listed
from qualification.policy import Policy
from qualification.results import Comparison, Derivation, GateResult, Outcome, decide

PROFILE, RATE = "EOS", "RATE"


@dataclass(frozen=True, kw_only=True)
class CoverageGate:
    """Every language, at least once."""

    id: str = "eos.coverage"

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult:
        """Count the languages of the policy with a natural end."""
        records = evidence.records(profile=PROFILE)
        if not records:
            return _nothing(policy, self.id, PROFILE)
        if "eos" in evidence.leaves_open:
            return _unknown(policy, self.id)
        languages = policy.rules_for(evidence.run["tier"]).limits.eos.languages
        ended = {record.language for record in records if natural(record)}
        tried = {record.language for record in records}
        missing = [language for language in languages if language not in ended]
        covered = len(languages) - len(missing)
        figure = Figure(observed=covered, limit=len(languages), comparison=Comparison.AT_LEAST, unit="languages")
        derivations = (_derivation(evidence, PROFILE, "language", "unique", finish_reason="stop"),)
        if not missing:
            detail = f"Each of {len(languages)} languages ended naturally at least once."
            outcome = Outcome.PASSED
        else:
            untried = [language for language in missing if language not in tried]
            detail = f"No natural end in: {listed(missing)}."
            detail += f" Not tried at all: {listed(untried)}." if untried else ""
            outcome = Outcome.FAILED
        return answer(policy, self.id, outcome, n=len(records), detail=detail, figure=figure, derivations=derivations)


@dataclass(frozen=True, kw_only=True)
class RateGate:
    """The share that does not end, bounded."""

    id: str = "eos.rate"

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult:
        """Decide by the bound of the share of requests without a natural end."""
        limit = policy.rules_for(evidence.run["tier"]).limits.eos.failure_rate_max
        return _by_bound(evidence, policy, self.id, PROFILE, limit, [])


@dataclass(frozen=True, kw_only=True)
class BoundGate:
    """The claim of a small rate, over every language."""

    id: str = "eos.bound"

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult:
        """Decide by the bound; draws that repeat, or a language that was not asked, decide nothing."""
        limits = policy.rules_for(evidence.run["tier"]).limits.eos
        asked = {record.language for record in evidence.records(profile=RATE)}
        missing = [language for language in limits.languages if language not in asked]
        return _by_bound(evidence, policy, self.id, RATE, limits.claimed_rate_max, missing)


def _by_bound(
    evidence: EvidenceView, policy: Policy, gate: str, profile: str, limit: float, missing: list[str]
) -> GateResult:
    records = evidence.records(profile=profile)
    if not records:
        return _nothing(policy, gate, profile)
    if "eos" in evidence.leaves_open:
        return _unknown(policy, gate)
    derivation = _derivation(evidence, profile, "unnatural", "share")
    share = evaluate(derivation, evidence)
    observed = float(share.value or 0)
    figure = Figure(observed=observed, limit=limit, comparison=Comparison.AT_MOST, unit="share", bound=share.upper95)
    outcome = decide(observed=observed, bound=share.upper95, limit=limit, comparison=Comparison.AT_MOST)
    reason = "draws_repeat" if _repeated(records) else "languages_missing" if missing else "bound_outside_limit"
    detail = _sentence(records, share.upper95)
    return answer(
        policy,
        gate,
        Outcome.INCONCLUSIVE if outcome is Outcome.PASSED and reason != "bound_outside_limit" else outcome,
        n=share.n,
        detail=f"{detail} Not asked: {listed(missing)}." if missing else detail,
        figure=figure,
        reason_code=reason,
        derivations=(derivation,),
    )


def natural(record: RequestRecord) -> bool:
    """Whether a request ended by the model's own end of speech."""
    return record.ok and record.finish_reason == "stop"


def _sentence(records: tuple[RequestRecord, ...], bound: float | None) -> str:
    unnatural = [record for record in records if not natural(record)]
    capped = sum(1 for record in unnatural if record.ok)
    text = f"{len(records) - len(unnatural)} of {len(records)} requests ended naturally"
    text += f"; {capped} ran into the ceiling and {len(unnatural) - capped} failed" if unnatural else ""
    text += f" ({listed(f'{record.workload_id} seed {record.seed}' for record in unnatural)})" if unnatural else ""
    return text + (f"; at 95 % at most {bound:.2%} do not." if bound is not None else ".")


def _repeated(records: Iterable[RequestRecord]) -> bool:
    """Whether a sentence was spoken twice with one seed: then the requests are not independent draws."""
    draws = [(record.workload_id, record.seed) for record in records]
    return len(set(draws)) < len(draws)


def _derivation(evidence: EvidenceView, name: str, field: str, estimator: str, **where: str) -> Derivation:
    file = next(profile["samples"] for profile in evidence.run["profiles"] if profile["name"] == name)
    return Derivation(file=file, field=field, estimator=estimator, where={"profile": name, "phase": "measure", **where})


def _nothing(policy: Policy, gate: str, profile: str) -> GateResult:
    detail = f"The run has no measured request of profile {profile}."
    return answer(policy, gate, Outcome.NOT_PERFORMED, n=0, detail=detail, reason_code="profile_not_run")


def _unknown(policy: Policy, gate: str) -> GateResult:
    detail = "The subject does not tell how its speech ended, so there is nothing to count."
    return answer(policy, gate, Outcome.NOT_PERFORMED, n=0, detail=detail, reason_code="eos_unknown")
