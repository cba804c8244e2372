"""Was the subject watched closely enough, and was its energy measured?

Spacing: every measured phase, of every profile, with one limit for the longest stretch without a sample and no
allowance beside it. A sampler that died or lost a sample fails it. Energy: only a counter counts; power samples are no
measure of energy, and where no counter can be read the gate is not performed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from qualification import paths, spacing
from qualification.derivation import PER_AUDIO_MINUTE, evaluate
from qualification.evidence_view import EvidenceView
from qualification.gates.answers import Figure, answer, listed
from qualification.policy import Policy
from qualification.results import Comparison, Derivation, GateResult, Outcome, decide

_LOADS: Final = ("B1", "B3", "B6")
_COUNTERS: Final = {"accelerators": "gpu_energy_j", "processor packages": "package_energy_j"}


@dataclass(frozen=True, kw_only=True)
class SpacingGate:
    """No measured phase has a hole."""

    id: str = "telemetry.spacing"

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult:
        """Compare the longest gap of all measured phases with the limit."""
        if not evidence.telemetry:
            detail = "No process of the subject could be sampled here."
            return answer(policy, self.id, Outcome.NOT_PERFORMED, n=0, detail=detail, reason_code="nothing_sampled")
        samplers = evidence.samplers
        limit = policy.rules_for(evidence.run["tier"]).limits.telemetry.gap_ms_max
        derivation = Derivation(file=paths.TELEMETRY, field="gap_ms", estimator="max", where={"phase": "measure"})
        longest = evaluate(derivation, evidence).value
        phases = [phase for phase in evidence.phases if phase["kind"] == "measure"]
        if longest is None:
            detail = "The run has no measured phase."
            return answer(policy, self.id, Outcome.NOT_PERFORMED, n=0, detail=detail, reason_code="nothing_measured")
        observed = float(longest)
        figure = Figure(observed=observed, limit=limit, comparison=Comparison.AT_MOST, unit="ms")
        outcome = decide(observed=observed, bound=observed, limit=limit, comparison=Comparison.AT_MOST)
        fault = _fault(samplers) or _unwatched(evidence, phases)
        detail = f"{len(phases)} measured phases{_pace(samplers)}; the longest stretch without a sample is "
        detail += f"{observed:.0f} ms, {_over(evidence, phases, limit)} are over {limit:g} ms."
        return answer(
            policy,
            self.id,
            Outcome.FAILED if fault else outcome,
            n=len(phases),
            detail=f"{fault} {detail}" if fault else detail,
            figure=figure,
            derivations=(derivation,),
        )


@dataclass(frozen=True, kw_only=True)
class EnergyGate:
    """Energy of the device that does the work, for each load profile that ran."""

    id: str = "telemetry.energy"

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult:
        """Look for a counter, and for its growth over each measured profile."""
        device = "accelerators" if evidence.run["subject"]["device"].startswith("cuda") else "processor packages"
        profiles = [item["name"] for item in evidence.run["profiles"] if item["name"] in _LOADS]
        derivations = [_per_minute(name, _COUNTERS[device]) for name in profiles]
        found = [evaluate(derivation, evidence) for derivation in derivations]
        values = {name: estimate.value for name, estimate in zip(profiles, found, strict=True) if estimate.value}
        if not values:
            detail = f"No energy counter of the {device} could be read: {_why(evidence, device)}."
            return answer(policy, self.id, Outcome.NOT_PERFORMED, n=0, detail=detail, reason_code="no_energy_counter")
        told = ", ".join(f"{name} {value:.4g} J" for name, value in values.items())
        detail = f"Counter of the {device}, for a minute of audio: {told}."
        missing = [name for name in _LOADS if name not in values]
        detail += f" Nothing for: {listed(missing)}." if missing else ""
        return answer(
            policy,
            self.id,
            Outcome.INCONCLUSIVE if missing else Outcome.PASSED,
            n=len(values),
            detail=detail,
            reason_code="profiles_missing" if missing else None,
            derivations=derivations,
        )


def _fault(samplers: Sequence[Mapping[str, Any]]) -> str | None:
    if not samplers:
        return "No sampling process left a record."
    return next((str(record["fault"]) for record in samplers if record["fault"]), None)


def _pace(samplers: Sequence[Mapping[str, Any]]) -> str:
    paces = sorted({(record["interval_ms"], record["priority"]) for record in samplers})
    return "".join(f", sampled every {interval} ms at priority {priority}" for interval, priority in paces)


def _unwatched(evidence: EvidenceView, phases: Sequence[Mapping[str, Any]]) -> str | None:
    """Samples of a measured phase that show no subject."""
    blind = sum(
        sample.rss_bytes is None
        for phase in phases
        for sample in evidence.telemetry_between(phase["start_ns"], phase["end_ns"])
    )
    return f"{blind} samples of measured phases show no process of the subject." if blind else None


def _over(evidence: EvidenceView, phases: Sequence[Mapping[str, Any]], limit: float) -> int:
    return sum(
        gap > limit * 1e6
        for phase in phases
        for gap in spacing.gaps(evidence.moments_of_session(phase["start_ns"]), phase["start_ns"], phase["end_ns"])
    )


def _per_minute(profile: str, field: str) -> Derivation:
    where = {"profile": profile, "phase": "measure"}
    return Derivation(file=paths.TELEMETRY, field=field, estimator=PER_AUDIO_MINUTE, where=where)


def _why(evidence: EvidenceView, device: str) -> str:
    key = "accelerators" if device == "accelerators" else "package_energy"
    absent = {record["sensors"][key]["absent"] for record in evidence.samplers} - {None}
    if not evidence.telemetry:
        return "nothing was sampled"
    return "; ".join(sorted(absent)) or "it stood still, or B1, B3 and B6 did not run"
