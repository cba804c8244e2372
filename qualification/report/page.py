"""What the report says, gathered from the evidence directory before anything is drawn.

HTML, Markdown and JUnit are three ways to show this one object, so they cannot disagree. Every figure is taken from
`summary.json` or `gates.json`; the pictures take the raw records. Nothing outside the directory is read, and not the
manifest either, because it is made after the report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from qualification import paths
from qualification.bench.raw import RequestRecord
from qualification.evidence_view import EvidenceView
from qualification.report.words import OUTCOMES, TIERS, Wording, figure, plural, size
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
class Tile:
    """One figure that matters, with its own small print. `style` is that of an outcome, or empty."""

    label: str
    value: str
    note: str
    style: str = ""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Measured requests of one profile that failed alike."""

    profile: str
    outcome: str
    code: str
    count: int
    detail: str


@dataclass(frozen=True, kw_only=True)
class ProfileView:
    """A load profile with its numbers by the rest of their names (`rtf.median`), and its standing."""

    plan: Mapping[str, Any]
    standing: str
    reasons: Sequence[str]
    numbers: Mapping[str, Mapping[str, Any]]

    @property
    def name(self) -> str:
        return str(self.plan["name"])

    @property
    def load(self) -> str:
        """The load in words."""
        count = self.plan["concurrency"]
        kinds = {
            "sustained": f"{plural(count, 'request')} kept in flight",
            "wave": f"{plural(count, 'request')} started together",
            "poisson": f"open load, {self.plan['rate_per_second']} requests a second",
        }
        return kinds[self.plan["load"]]

    def value(self, key: str) -> float | None:
        """A number's value; None where it is missing or was not measured."""
        return self.numbers[key]["value"] if key in self.numbers else None

    def upper(self, key: str) -> float | None:
        """A number's 95 % upper bound, or None."""
        return self.numbers[key]["upper95"] if key in self.numbers else None

    def shown(self, key: str) -> str:
        """A number with its bound, as a table cell."""
        if key not in self.numbers:
            return figure(None, None)
        number = self.numbers[key]
        bound = "" if number["upper95"] is None else f" (\u2264 {figure(number['upper95'], number['unit'])})"
        return figure(number["value"], number["unit"]) + bound


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

    @property
    def verdict(self) -> Mapping[str, Any]:
        verdict: Mapping[str, Any] = self.summary["verdict"]
        return verdict

    @property
    def qualified(self) -> bool:
        return bool(self.verdict["outcome"] == "qualified")

    @property
    def headline(self) -> str:
        return "Qualified" if self.qualified else "Not qualified"

    @property
    def verdict_words(self) -> tuple[str, str]:
        """The verdict's own words, cut after its first sentence; nothing is left out."""
        head, colon, rest = str(self.verdict["sentence"]).partition(" passed. ")
        return (head + colon.rstrip(), rest) if colon else (head, "")

    @property
    def tier_words(self) -> str:
        return TIERS[self.summary["tier"]]

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
    profiles = tuple(_profile(plan, summary) for plan in evidence.run["profiles"])
    return Page(
        run=evidence.run,
        policy=evidence.document(paths.POLICY),
        summary=summary,
        identity=evidence.document(paths.IDENTITY),
        licences=evidence.document(paths.LICENCES),
        environment=evidence.document(paths.ENVIRONMENT),
        gates=gates,
        profiles=profiles,
        tiles=_tiles(summary, profiles),
        failures=_failures(evidence.records()),
        digests=_digests(evidence),
    )


_ENDS: Final = "run.ends."
_SIGN: Final = {"<=": "\u2264", ">=": "\u2265"}
_DIGESTED: Final = (
    paths.RUN, paths.POLICY, paths.PINS, paths.WORKLOAD, paths.IDENTITY, paths.LICENCES, paths.ENVIRONMENT,
    paths.PHASES, paths.TELEMETRY, paths.GATES, paths.SUMMARY,
)  # fmt: skip


def _gate(item: Mapping[str, Any], required: set[str]) -> GateView:
    result = GateResult.from_json(item)
    return GateView(result=result, wording=OUTCOMES[result.outcome], required=result.id in required)


def _profile(plan: Mapping[str, Any], summary: Mapping[str, Any]) -> ProfileView:
    prefix = f"{plan['name'].lower()}."
    numbers = {
        number["id"].removeprefix(prefix): number
        for number in summary["numbers"]
        if number["id"].startswith(prefix) and number["derivation"]["where"].get("profile") == plan["name"]
    }
    standing = next(item for item in summary["profiles"] if item["name"] == plan["name"])
    return ProfileView(plan=plan, standing=standing["standing"], reasons=standing["reasons"], numbers=numbers)


def _tiles(summary: Mapping[str, Any], profiles: Sequence[ProfileView]) -> tuple[Tile, ...]:
    """Failures first: a figure of those that succeeded means little without them."""
    numbers = {number["id"]: number for number in summary["numbers"]}
    tiles = [_failure_tile(profiles), _ends_tile(numbers)]
    covered = sum(1 for key, number in numbers.items() if _is_language_end(key) and number["value"])
    total = sum(1 for key in numbers if _is_language_end(key))
    style = "passed" if covered == total else "failed"
    tiles.append(
        Tile(label="languages that ended naturally", value=f"{covered} of {total}", note="at least once", style=style)
    )
    alone = next((profile for profile in profiles if profile.plan["concurrency"] == 1), None)
    if alone is not None:
        tiles.append(_median_tile(alone, "rtf", "real-time factor, alone"))
        tiles.append(_median_tile(alone, "ttfa", "first audio, alone"))
    memory = numbers["run.memory.rss.peak"]["value"]
    tiles.append(
        Tile(label="peak memory", value=figure(memory, "bytes"), note="resident, all processes of the subject")
    )
    return tuple(tiles)


def _is_language_end(key: str) -> bool:
    """Whether a number counts one language's natural ends: `run.ends.<language>.natural`."""
    return key.startswith(_ENDS) and key.endswith(".natural") and key.count(".") == 3


def _failure_tile(profiles: Sequence[ProfileView]) -> Tile:
    failed = sum(int(profile.value("failed") or 0) for profile in profiles)
    asked = sum(int(profile.value("requests") or 0) for profile in profiles)
    return Tile(
        label="requests that failed", value=f"{failed} of {asked}", note="all profiles, warm-up excluded",
        style="failed" if failed else "passed",
    )  # fmt: skip


def _ends_tile(numbers: Mapping[str, Mapping[str, Any]]) -> Tile:
    natural, asked = numbers["run.ends.natural"]["value"], numbers["run.ends.requests"]["value"]
    bound = numbers["run.ends.unnatural_rate"]["upper95"]
    note = "nothing to bound" if bound is None else f"others: at most {figure(bound, 'share')}, at 95\u202f% confidence"
    style = "passed" if natural == asked else "inconclusive"
    return Tile(label="ended by themselves", value=f"{natural} of {asked}", note=note, style=style)


def _median_tile(profile: ProfileView, key: str, label: str) -> Tile:
    median = profile.numbers[f"{key}.median"]
    note = f"{profile.name} median of {median['n']}"
    note += "" if median["upper95"] is None else f", bound {figure(median['upper95'], median['unit'])}"
    return Tile(label=label, value=figure(median["value"], median["unit"]), note=note)


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


def machine_facts(environment: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The machine in label and value; what could not be read says so."""
    machine, container = environment["machine"], environment["container"]
    accelerators = environment["accelerators"]
    load = machine["load_average"]
    unread = "not readable"
    facts = [
        ("processor", machine["cpu_model"] or unread),
        ("architecture", machine["architecture"]),
        ("processors", f"{machine['cpus']}, {machine['cpus_usable'] or unread} usable"),
        ("processor quota", "none" if machine["cpu_quota"] is None else f"{machine['cpu_quota']:g}"),
        ("memory", size(machine["memory_bytes"]) if machine["memory_bytes"] else unread),
        ("load before the run", unread if load is None else ", ".join(f"{value:.2f}" for value in load)),
        ("kernel", f"{machine['system']} {machine['kernel']}"),
        ("python", f"{environment['python']['implementation']} {environment['python']['version']}"),
        ("container marks", ", ".join(container["hints"]) or "none found"),
        ("accelerator driver", accelerators["driver"] or f"absent: {accelerators['absent']}"),
    ]
    for device in accelerators["devices"]:
        others = device["competing_processes"]
        busy = "competitors unknown" if others is None else f"{plural(others, 'competing process')}"
        facts.append((f"accelerator {device['index']}", f"{device['name'] or unread}, {busy}"))
    return tuple(facts)
