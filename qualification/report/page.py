"""What the report says, gathered from the evidence directory before anything is drawn.

HTML, Markdown and JUnit are three ways to show this one object, so they cannot disagree. Every figure is taken from
`summary.json` or `gates.json`; the pictures take the raw records. Nothing outside the directory is read, and not the
manifest either, because it is made after the report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from qualification import paths
from qualification.bench.raw import RequestRecord
from qualification.evidence_view import EvidenceView
from qualification.report.claims import natural_ends
from qualification.report.profiles import ProfileView, profile_view
from qualification.report.tiles import Tile, key_figures
from qualification.report.words import OUTCOMES, TIERS, Wording, figure, plural
from qualification.results import GateResult, Outcome

UNDECIDED: Final = (Outcome.FAILED, Outcome.ERROR, Outcome.INCONCLUSIVE)


@dataclass(frozen=True, kw_only=True)
class GateView:
    """A gate's result with its words and whether the tier requires it."""

    result: GateResult
    wording: Wording
    required: bool

    @property
    def figures(self) -> str:
        """Observed figure, bound and limit in one phrase; empty where the gate has none."""
        result = self.result
        if result.observed is None:
            return ""
        text = figure(result.observed, result.unit)
        text += "" if result.bound is None else f" (bound {figure(result.bound, result.unit)})"
        return (
            text
            if result.limit is None
            else f"{text} {_SIGN[str(result.comparison)]} {figure(result.limit, result.unit)}"
        )


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Measured requests of one profile that failed alike."""

    profile: str
    outcome: str
    code: str
    count: int
    detail: str


@dataclass(frozen=True, kw_only=True)
class Page:
    """Everything that is shown."""

    run: Mapping[str, Any]
    policy: Mapping[str, Any]
    summary: Mapping[str, Any]
    identity: Mapping[str, Any]
    licences: Mapping[str, Any]
    environment: Mapping[str, Any]
    gates: tuple[GateView, ...]
    profiles: tuple[ProfileView, ...]
    tiles: tuple[Tile, ...]
    failures: tuple[Failure, ...]
    digests: Mapping[str, str]
    interruptions: tuple[Mapping[str, Any], ...]

    @property
    def verdict(self) -> Mapping[str, Any]:
        verdict: Mapping[str, Any] = self.summary["verdict"]
        return verdict

    @property
    def qualified(self) -> bool:
        return bool(self.verdict["outcome"] == "qualified")

    @property
    def broken_off(self) -> str:
        """In how many sessions the run was gathered and why they ended early; empty for a run in one piece."""
        if not self.interruptions:
            return ""
        causes = ", ".join(str(end["cause"]) for end in self.interruptions)
        return f"in {plural(self.run['sessions'], 'session')}, ended early {len(self.interruptions)}×: {causes}"

    @property
    def incomplete(self) -> bool:
        """Whether the run was asked for a subset of the gates."""
        return bool(self.verdict["outcome"] == "incomplete")

    @property
    def headline(self) -> str:
        return str(self.verdict["outcome"]).replace("_", " ").capitalize()

    @property
    def verdict_words(self) -> tuple[str, str]:
        """The verdict's own words, cut after its first sentence; nothing is left out."""
        head, colon, rest = str(self.verdict["sentence"]).partition(" passed. ")
        return (head + colon.rstrip(), rest) if colon else (head, "")

    @property
    def tier_words(self) -> str:
        return TIERS[self.summary["tier"]]

    @property
    def ends_claim(self) -> str:
        """Which claim about natural ends is made."""
        return natural_ends(gate.result for gate in self.gates)

    def with_outcome(self, *outcomes: Outcome) -> tuple[GateView, ...]:
        """Gates with one of these outcomes, in the policy's order."""
        return tuple(gate for gate in self.gates if gate.result.outcome in outcomes)

    @property
    def passed(self) -> tuple[GateView, ...]:
        return self.with_outcome(Outcome.PASSED)

    @property
    def against(self) -> tuple[GateView, ...]:
        return self.with_outcome(*UNDECIDED)

    @property
    def undone(self) -> tuple[GateView, ...]:
        return self.with_outcome(Outcome.NOT_PERFORMED)

    @property
    def inapplicable(self) -> tuple[GateView, ...]:
        return self.with_outcome(Outcome.NOT_APPLICABLE)

    def count(self, outcome: Outcome) -> int:
        """Gates with this outcome."""
        return len(self.with_outcome(outcome))


def read_page(evidence: EvidenceView) -> Page:
    """Gather the page.

    Raises:
        BundleError, StrictJsonError, SchemaError: a file is missing or malformed.
    """
    summary = evidence.document(paths.SUMMARY)
    required = set(summary["verdict"]["required"])
    gates = tuple(_gate(item, required) for item in evidence.document(paths.GATES)["results"])
    profiles = tuple(profile_view(plan, summary) for plan in evidence.run["profiles"])
    return Page(
        run=evidence.run,
        policy=evidence.document(paths.POLICY),
        summary=summary,
        identity=evidence.document(paths.IDENTITY),
        licences=evidence.document(paths.LICENCES),
        environment=evidence.document(paths.ENVIRONMENT),
        gates=gates,
        profiles=profiles,
        tiles=key_figures(summary, profiles),
        failures=_failures(evidence.records()),
        digests=_digests(evidence),
        interruptions=evidence.interruptions,
    )


_SIGN: Final = {"<=": "\u2264", ">=": "\u2265"}
_DIGESTED: Final = (
    paths.RUN, paths.POLICY, paths.PINS, paths.WORKLOAD, paths.IDENTITY, paths.LICENCES, paths.ENVIRONMENT,
    paths.PHASES, paths.TELEMETRY, paths.GATES, paths.SUMMARY,
)  # fmt: skip


def _gate(item: Mapping[str, Any], required: set[str]) -> GateView:
    result = GateResult.from_json(item)
    return GateView(result=result, wording=OUTCOMES[result.outcome], required=result.id in required)


def _failures(records: Iterable[RequestRecord]) -> tuple[Failure, ...]:
    failed = [record for record in records if not record.ok]
    kinds = Counter((record.profile, record.outcome.value, record.error_code or "") for record in failed)
    return tuple(
        Failure(
            profile=profile, outcome=outcome.replace("_", " "), code=code, count=count,
            detail=next(
                (record.error_detail or "")
                for record in failed
                if (record.profile, record.outcome.value, record.error_code or "") == (profile, outcome, code)
            ),
        )
        for (profile, outcome, code), count in sorted(kinds.items())
    )  # fmt: skip


def _digests(evidence: EvidenceView) -> dict[str, str]:
    """SHA-256 of the documents and raw files that the page was made from."""
    names = [name for name in (*_DIGESTED, *evidence.sample_files) if evidence.exists(name)]
    return {name: evidence.sha256(name) for name in names}
