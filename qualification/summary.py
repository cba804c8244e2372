"""The summary: the metric table evaluated, the verdict, the standing of each profile and the limitations.

A pure function of the files of the evidence directory (policy copy and gate results included), so that the verifier
builds it again and compares the whole document exactly. Nothing in it is typed in by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any, Final

from qualification import schema
from qualification.bench.raw import TelemetrySample
from qualification.bench.statistics import share_upper95
from qualification.derivation import evaluate
from qualification.estimators import Estimate
from qualification.evidence_view import EvidenceView
from qualification.metrics import Metric, metrics_for
from qualification.policy import Counts, Policy, Verdict, judge
from qualification.results import Derivation, GateResult, derivation_json

_TIER_LIMITATIONS: Final = {
    "reference": "The weights are the embedded reference model: the run shows that engine and harness work, and nothing of the published model.",
    "shape": "The weights are synthetic in the published shapes: the run shows speed, and nothing of speech, natural ends or identity.",
    "unverified": "The weights could not be tied to any pin: every figure is about an unknown model.",
}


def build(evidence: EvidenceView, policy: Policy, results: Sequence[GateResult]) -> dict[str, Any]:
    """The document `summary.json`. `gates.json` must lie in the directory already: its counts are numbers too.

    Raises:
        BundleError, StrictJsonError, SchemaError: a file that a number derives from is missing or malformed.
    """
    run = evidence.run
    rules = policy.rules_for(run["tier"])
    profiles = [_standing(evidence, profile, rules.counts) for profile in run["profiles"]]
    return {
        "schema": schema.urn("summary"),
        "run_id": run["run_id"],
        "tier": run["tier"],
        "verdict": verdict(evidence, policy, results).to_json(),
        "profiles": profiles,
        "numbers": [number(metric, evidence) for metric in metrics_for(run, rules.limits.eos.languages)],
        "limitations": list(_limitations(evidence, rules.limits.eos.languages, profiles)),
    }


def verdict(evidence: EvidenceView, policy: Policy, results: Sequence[GateResult]) -> Verdict:
    """The verdict of results under a policy; waivers are judged on the day that the run ended."""
    run = evidence.run
    day = date.fromisoformat(run["ended_utc"][:10])
    return judge(policy, tier=run["tier"], day=day, results=results, selected=run["gates_selected"])


def number(metric: Metric, evidence: EvidenceView) -> dict[str, Any]:
    """One entry of `numbers`: the metric evaluated from the files."""
    estimate = evaluate(metric.derivation, evidence)
    return {
        "id": metric.id,
        "title": metric.title,
        "unit": metric.unit,
        "derivation": derivation_json(metric.derivation),
        "value": estimate.value,
        "n": estimate.n,
        "upper95": estimate.upper95,
        "reason": estimate.reason,
    }


def _standing(evidence: EvidenceView, profile: Mapping[str, Any], counts: Counts) -> dict[str, Any]:
    reasons = list(_shortfalls(evidence, profile, counts))
    return {"name": profile["name"], "standing": "informative" if reasons else "qualifying", "reasons": reasons}


def _shortfalls(evidence: EvidenceView, profile: Mapping[str, Any], counts: Counts) -> Iterator[str]:
    succeeded = _measured(evidence, profile, "succeeded", "sum").value or 0
    seconds = _measured(evidence, profile, "request_id", "span").value or 0.0
    if succeeded < counts.successes_per_profile:
        yield f"{succeeded} successes, the tier asks for {counts.successes_per_profile}"
    if seconds < counts.seconds_per_profile:
        yield f"{seconds:.1f} s measured, the tier asks for {counts.seconds_per_profile:g} s"
    wanted = counts.warmup_for(profile["concurrency"])
    for turn in range(profile["rounds"]):
        warm = sum(1 for r in evidence.records(profile=profile["name"], phase="warmup") if r.round == turn)
        if warm < wanted:
            yield f"{warm} warm-up requests in round {turn}, the tier asks for {wanted}"


def _measured(evidence: EvidenceView, profile: Mapping[str, Any], field: str, estimator: str) -> Estimate:
    where = {"profile": profile["name"], "phase": "measure"}
    return evaluate(Derivation(file=profile["samples"], field=field, estimator=estimator, where=where), evidence)


def _limitations(
    evidence: EvidenceView, languages: Sequence[str], profiles: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, str]]:
    run = evidence.run
    if run["tier"] in _TIER_LIMITATIONS:
        yield _limitation(f"tier_{run['tier']}", _TIER_LIMITATIONS[run["tier"]], "whoever runs the qualification")
    bound = share_upper95(0, len(languages))
    text = f"One natural end in each of {len(languages)} languages bounds the rate of endless requests only at {bound:.1%}."
    yield _limitation("coverage_is_no_rate", text, "project")
    yield _limitation("ending_is_not_speech", "A request that ended naturally need not be intelligible.", "project")
    yield from _interruptions(evidence)
    yield from _left_open(evidence)
    for profile in profiles:
        if profile["standing"] == "informative":
            text = f"Profile {profile['name']} is informative only: {'; '.join(profile['reasons'])}."
            yield _limitation("informative_profile", text, "whoever runs the qualification")
    if not any(_has_energy(sample) for sample in evidence.telemetry):
        text = "No energy counter could be read during the run, so energy is not given; it is never estimated."
        yield _limitation("no_energy_counter", text, "owner of the machine")
    if run["source"]["commit"] is None or run["source"]["dirty"] is not False:
        text = "The source of the harness is not pinned to a clean commit, so the run cannot be repeated exactly."
        yield _limitation("source_not_pinned", text, "whoever runs the qualification")
    text = "One run on one machine: another machine, load or day may give other figures."
    yield _limitation("one_machine", text, "whoever runs the qualification")


def _interruptions(evidence: EvidenceView) -> Iterator[dict[str, str]]:
    causes = [f"{end['cause']} at {end['at_utc'][:19].replace('T', ' ')} UTC" for end in evidence.interruptions]
    if not causes:
        return
    units = [unit for session in evidence.sessions for unit in session["set_aside"]]
    times = "once" if len(causes) == 1 else f"{len(causes)} times"
    text = f"The run ended before its time {times} and went on: {', '.join(causes)}. "
    text += (
        f"{len(units)} units of work were cut short and run again; {sum(unit['requests'] for unit in units)} of their requests "
        "are kept in abandoned/ and count nowhere."
    )
    yield _limitation("interrupted", text, "whoever runs the qualification")


def _has_energy(sample: TelemetrySample) -> bool:
    counters = [sample.package_energy_microjoules, *(gpu.energy_millijoules for gpu in sample.gpus)]
    return any(counter is not None for counter in counters)


def _left_open(evidence: EvidenceView) -> Iterator[dict[str, str]]:
    """What the subject could not be told, or did not tell."""
    owner = "owner of the subject"
    if evidence.run["subject"]["kind"] == "adapter":
        text = "An adapter passed requests on: times are those behind it, and nothing of the subject's machine or files was seen."
        yield _limitation("adapter", text, owner)
    if "eos" in evidence.leaves_open:
        yield _limitation("ends_untold", "The subject does not tell how its speech ended; no end was made up.", owner)
    unset = sorted(evidence.leaves_open - {"eos"})
    if unset:
        text = f"The subject takes no setting of {', '.join(unset)}: the workload's was not in force."
        yield _limitation("not_controlled", text, owner)


def _limitation(code: str, text: str, owner: str) -> dict[str, str]:
    return {"code": code, "text": text, "owner": owner}
