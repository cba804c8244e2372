"""The policy: which gates there are, which a tier requires, the limits, the waivers, and the verdict that follows.

Thresholds are data (`data/policy.json`), copied into each bundle. Missing is denied: a required gate without a `passed`
result, and every run of tier `unverified`, is not qualified.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

from qualification import schema, strictjson
from qualification.errors import InputError
from qualification.paths import POLICY, data_file
from qualification.results import GateResult, Outcome

UNVERIFIED: Final = "unverified"
_RULES_OF_UNVERIFIED: Final = "reference"


@dataclass(frozen=True, kw_only=True)
class GateEntry:
    """One gate as the policy names it; `needed` and `owner` are said when it was not performed."""

    id: str
    title: str
    claim: str
    needed: str
    owner: str


@dataclass(frozen=True, kw_only=True)
class Waiver:
    """A dated decision to go without a gate, or (with `subject`) without one thing inside it."""

    gate: str
    subject: str | None
    who: str
    why: str
    until: date

    def holds(self, day: date) -> bool:
        return day <= self.until

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "until": self.until.isoformat()}


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Below these a profile is informative."""

    successes_per_profile: int
    seconds_per_profile: float
    warmup_requests: int
    warmup_per_slot: int

    def warmup_for(self, concurrency: int) -> int:
        """Least warm-up requests at this concurrency."""
        return max(self.warmup_requests, self.warmup_per_slot * concurrency)


@dataclass(frozen=True, kw_only=True)
class EosLimits:
    """`failure_rate_max` bounds the share of requests that do not end naturally; `claimed_rate_max` is the share for
    the claim of a rate, which needs a profile of its own."""

    languages: tuple[str, ...]
    failure_rate_max: float
    claimed_rate_max: float


@dataclass(frozen=True, kw_only=True)
class AudioLimits:
    """Limits of one stored utterance; shares of full scale, of samples or of 20 ms windows; seconds.

    `speech_crossings_*` are changes of sign a sample, `speech_variation_min` loud over quiet windows.
    """

    clipped_fraction_max: float
    peak_min: float
    seconds_min: float
    speech_fraction_min: float
    speech_window_rms_min: float
    speech_crossings_min: float
    speech_crossings_max: float
    speech_variation_min: float


@dataclass(frozen=True, kw_only=True)
class BenchLimits:
    """Limits of one profile; None: no limit."""

    rtf_median_max: float | None
    rtf_aggregate_max: float | None
    ttfa_median_ms_max: float | None
    underrun_p95_ms_max: float | None
    underrun_median_ms_max: float | None
    failure_rate_max: float | None


@dataclass(frozen=True, kw_only=True)
class TelemetryLimits:
    """`gap_ms_max`: longest stretch of a measured phase without a sample, milliseconds."""

    gap_ms_max: float


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Every threshold of a tier."""

    eos: EosLimits
    audio: AudioLimits
    bench: Mapping[str, BenchLimits]
    memory_rss_peak_bytes_max: int | None
    telemetry: TelemetryLimits


@dataclass(frozen=True, kw_only=True)
class TierRules:
    """What one tier requires. `not_applicable` maps a gate to the reason. A signature is a demand on the sealed bundle,
    which no gate of the run can see: the verifier answers it."""

    required: tuple[str, ...]
    signature_required: bool
    not_applicable: Mapping[str, str]
    counts: Counts
    limits: Limits


@dataclass(frozen=True, kw_only=True)
class Policy:
    """A checked policy and the document that it came from."""

    name: str
    version: str
    gates: tuple[GateEntry, ...]
    tiers: Mapping[str, TierRules]
    never_waived: frozenset[str]
    licences_allowed: frozenset[str]
    licence_exceptions_allowed: frozenset[str]
    waivers: tuple[Waiver, ...]
    document: Mapping[str, Any]

    def rules_for(self, tier: str) -> TierRules:
        """Rules of a tier; `unverified` borrows those of `reference` and can still never be qualified."""
        return self.tiers[_RULES_OF_UNVERIFIED if tier == UNVERIFIED else tier]

    def gate(self, gate_id: str) -> GateEntry:
        """The gate called `gate_id`. Raises `InputError` where the policy has none."""
        for entry in self.gates:
            if entry.id == gate_id:
                return entry
        raise InputError(f"policy {self.name} has no gate {gate_id!r}; name one of its gates")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the results amount to under the policy. Gate ids in the policy's order."""

    outcome: str
    sentence: str
    required: tuple[str, ...]
    passed: tuple[str, ...]
    unmet: tuple[str, ...]
    not_performed: tuple[str, ...]
    waived: tuple[Waiver, ...]
    not_selected: tuple[str, ...] = ()

    @property
    def qualified(self) -> bool:
        return self.outcome == "qualified"

    def to_json(self) -> dict[str, Any]:
        """The `verdict` object of the summary."""
        document = {key: list(value) if isinstance(value, tuple) else value for key, value in vars(self).items()}
        document["waived"] = [waiver.to_json() for waiver in self.waived]
        return document


def load_policy(path: Path | None = None) -> Policy:
    """The policy in `path`, or the one that ships with the package.

    Raises:
        InputError: not strict JSON, not of the schema, or contradicting itself.
        OSError: the file cannot be read.
    """
    path = path or data_file(POLICY)
    return parse_policy(strictjson.load(path), path.name)


def parse_policy(document: Any, name: str = POLICY) -> Policy:
    """Read a parsed document; `name` opens every message. Raises `InputError` as `load_policy` does."""
    schema.validate("policy", document, name)
    policy = Policy(
        name=document["name"],
        version=document["version"],
        gates=tuple(GateEntry(**entry) for entry in document["gates"]),
        tiers={tier: _rules(rules) for tier, rules in document["tiers"].items()},
        never_waived=frozenset(document["never_waived"]),
        licences_allowed=frozenset(document["licences"]["allowed"]),
        licence_exceptions_allowed=frozenset(document["licences"]["allowed_exceptions"]),
        waivers=tuple(_waiver(waiver) for waiver in document["waivers"]),
        document=document,
    )
    for problem in _contradictions(policy):
        raise InputError(f"{name}: {problem}")
    return policy


def judge(
    policy: Policy,
    *,
    tier: str,
    day: date,
    results: Iterable[GateResult],
    selected: Collection[str] | None = None,
) -> Verdict:
    """The verdict of `results` for `tier`. A waiver counts when it names the whole gate and holds on `day`.

    `selected`: the gates that the run was asked for, None for all. A subset is `incomplete` whatever it says; `unmet`
    then names the required gates of the subset alone.
    """
    outcomes = {result.id: result.outcome for result in results}
    required = policy.rules_for(tier).required
    left_out = tuple(entry.id for entry in policy.gates if selected is not None and entry.id not in selected)
    short = [gate for gate in required if outcomes.get(gate) is not Outcome.PASSED and gate not in left_out]
    waived = tuple(
        waiver for waiver in policy.waivers if waiver.gate in short and waiver.subject is None and waiver.holds(day)
    )
    unmet = tuple(gate for gate in short if gate not in {waiver.gate for waiver in waived})
    ids = [entry.id for entry in policy.gates]
    not_performed = tuple(gate for gate in ids if outcomes.get(gate, Outcome.NOT_PERFORMED) is Outcome.NOT_PERFORMED)
    outcome = "not_qualified" if unmet or tier == UNVERIFIED else "qualified"
    outcome = outcome if selected is None else "incomplete"
    passed = tuple(gate for gate in ids if outcomes.get(gate) is Outcome.PASSED)
    return Verdict(
        outcome=outcome,
        sentence=" ".join(
            [
                _head(policy, tier, outcome, required, passed),
                *_sentences(tier, unmet, not_performed, waived, left_out),
            ]
        ),
        required=required,
        passed=passed,
        unmet=unmet,
        not_performed=not_performed,
        waived=waived,
        not_selected=left_out,
    )


def _head(policy: Policy, tier: str, outcome: str, required: tuple[str, ...], passed: tuple[str, ...]) -> str:
    head = f"{outcome.replace('_', ' ').capitalize()} in tier {tier} under {policy.name} {policy.version}"
    return f"{head}: {len(set(required) & set(passed))} of {len(required)} required gates passed."


def _sentences(
    tier: str,
    unmet: tuple[str, ...],
    not_performed: tuple[str, ...],
    waived: tuple[Waiver, ...],
    left_out: tuple[str, ...],
) -> Iterator[str]:
    if tier == UNVERIFIED:
        yield "The weights could not be verified, so no set of gates can qualify them."
    if left_out:
        yield f"The run was asked for a subset of the gates, which can never qualify; {len(left_out)} were left out."
    if unmet:
        yield f"Required and not passed: {', '.join(unmet)}."
    if waived:
        yield "Waived: " + ", ".join(f"{w.gate} by {w.who} until {w.until.isoformat()}" for w in waived) + "."
    yield f"Not performed: {', '.join(not_performed)}." if not_performed else "Every gate was performed."


def _rules(document: Mapping[str, Any]) -> TierRules:
    limits = document["limits"]
    eos = limits["eos"]
    return TierRules(
        required=tuple(document["required"]),
        signature_required=document["signature_required"],
        not_applicable={item["gate"]: item["why"] for item in document["not_applicable"]},
        counts=Counts(**document["counts"]),
        limits=Limits(
            eos=EosLimits(**{**eos, "languages": tuple(eos["languages"])}),
            audio=AudioLimits(**limits["audio"]),
            bench={name: BenchLimits(**values) for name, values in limits["bench"].items()},
            memory_rss_peak_bytes_max=limits["memory_rss_peak_bytes_max"],
            telemetry=TelemetryLimits(**limits["telemetry"]),
        ),
    )


def _waiver(document: Mapping[str, Any]) -> Waiver:
    return Waiver(**{**document, "until": date.fromisoformat(document["until"])})


def _contradictions(policy: Policy) -> Iterable[str]:
    """What the schema cannot say: every gate that is named exists, once, and no waiver reaches the unwaivable."""
    ids = [entry.id for entry in policy.gates]
    for gate in sorted({gate for gate in ids if ids.count(gate) > 1}):
        yield f"gate {gate} is listed twice; keep one"
    for tier, rules in policy.tiers.items():
        for gate in sorted({*rules.required, *rules.not_applicable} - set(ids)):
            yield f"tier {tier} names gate {gate}, which the policy does not have; add or remove it"
        for gate in sorted(set(rules.required) & set(rules.not_applicable)):
            yield f"tier {tier} requires gate {gate} and calls it not applicable; choose one"
    for gate in sorted(policy.never_waived - set(ids)):
        yield f"never_waived names gate {gate}, which the policy does not have; add or remove it"
    for waiver in policy.waivers:
        if waiver.gate not in ids or (waiver.gate in policy.never_waived and waiver.subject is None):
            yield f"waiver of {waiver.gate} is not possible; remove it"
