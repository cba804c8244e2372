"""Verifies a controlled comparison: its two bundles, and that every run was planned, is there once, and took its turn.

1. Exactly the documents, the two bundles and (signed) the statement lie there, as the manifest has them.
2. A key that the caller trusts signed the manifest, where one is asked for.
3. Both bundles verify.
4. The planned runs are those of the design, each with one successful attempt, its last; every session of both bundles
   belongs to one attempt.
5. Each attempt encloses what its session measured; attempts followed each other, and their two clocks agree.
6. Both sides were asked the same, but for what was allowed to differ.
7. What `schedule.json` says of the bundles, and the whole of `comparison.json`, follows from the bundles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from qualification import paths, schema, signing, strictjson
from qualification.comparison.document import Asked, compare
from qualification.controlled.record import COMPARISON, SCHEDULE, schedule_document
from qualification.controlled.schedule import SIDES, planned_runs
from qualification.controlled.sealing import LISTED, manifest_document, statement_document
from qualification.errors import QualificationError
from qualification.evaluation import Gate
from qualification.evidence_view import EvidenceView
from qualification.verify.findings import FAMILIES, Finding
from qualification.verify.recompute import Report
from qualification.verify.report import Verification
from qualification.verify.trust import Trust
from qualification.verify.verifier import verify

_ASPECTS: Final = {"workload": "workload", "profiles": "workload", "sampling": "sampling"}
_SLACK: Final = timedelta(seconds=2)
_SCHEMAS: Final = {SCHEDULE: "controlled-schedule", COMPARISON: "comparison", paths.MANIFEST: "controlled-manifest"}


@dataclass(frozen=True, kw_only=True)
class ControlledVerification:
    """Findings of the comparison itself, and the verifications of its bundles."""

    findings: tuple[Finding, ...]
    bundles: Mapping[str, Verification]

    @property
    def refused(self) -> bool:
        return any(f.refuses for f in self.findings) or any(item.refused for item in self.bundles.values())

    @property
    def exit_code(self) -> int:
        """0 where it is sound, else the first family that refuses, of the comparison or of a bundle."""
        families = [FAMILIES[f.family] for f in self.findings if f.refuses]
        families += [item.exit_code for item in self.bundles.values() if item.refused]
        return min(families, default=0)

    def to_json(self) -> dict[str, Any]:
        """The document `controlled-verification`."""
        return {
            "schema": schema.urn("controlled-verification"),
            "answer": "refused" if self.refused else "sound",
            "exit_code": self.exit_code,
            **{side: self.bundles[side].to_json() for side in SIDES},
            "findings": [{**vars(finding), "family": finding.family} for finding in self.findings],
        }

    def lines(self) -> Iterator[str]:
        """The result for people."""
        for finding in self.findings:
            kind = "refused" if finding.refuses else "note"
            yield f"     {kind:7}  {finding.code:28}  {finding.file}: {finding.detail}"
        for side in SIDES:
            yield f"bundle {side.upper()}:"
            yield from self.bundles[side].lines()
        yield "REFUSED." if self.refused else "The comparison is sound: every planned run is there once, in its turn."


def verify_controlled(
    root: Path, trust: Trust, gates: Mapping[str, Gate], report: Report | None = None
) -> ControlledVerification:
    """Verify the comparison at `root`. Never raises for what lies in it."""
    bundles = {side: verify(root / side, trust, gates, report) for side in SIDES}  # 3
    steps: tuple[Callable[[], Iterator[Finding]], ...] = (
        lambda: _structure(root),
        lambda: _authenticity(root, trust),
        lambda: _content(root, bundles),
    )
    findings: list[Finding] = []
    for step in steps:
        try:
            findings.extend(step())
        except (QualificationError, OSError, LookupError, TypeError, ValueError) as error:
            told = str(error) if isinstance(error, QualificationError) else type(error).__name__
            findings.append(Finding(code="verifier.step-failed", file=".", detail=f"cannot be answered: {told}"))
    return ControlledVerification(findings=tuple(sorted(set(findings))), bundles=bundles)


def _structure(root: Path) -> Iterator[Finding]:
    allowed = {*_SCHEMAS, paths.STATEMENT, *SIDES}  # 1
    for place in sorted(root.iterdir()):
        if place.name not in allowed or place.is_symlink() or place.is_dir() != (place.name in SIDES):
            yield Finding(code="comparison.file", file=place.name, detail="does not belong there")
    for name, kind in _SCHEMAS.items():
        try:
            document = schema.load(kind, paths.locate(root, name))
        except QualificationError as error:
            yield Finding(code="document.malformed", file=name, detail=str(error))
            continue
        if strictjson.dumps(document) != (root / name).read_bytes():
            yield Finding(code="document.not-canonical", file=name, detail="not in canonical form")
    manifest = schema.load("controlled-manifest", paths.locate(root, paths.MANIFEST))
    if manifest != manifest_document(root, manifest["comparison_id"]):
        detail = f"not the files that were sealed: {', '.join(LISTED)}"
        yield Finding(code="comparison.file", file=paths.MANIFEST, detail=detail)


def _authenticity(root: Path, trust: Trust) -> Iterator[Finding]:
    if not (root / paths.STATEMENT).exists():  # 2
        refuses = bool(trust.keys)
        code = "signature.missing" if refuses else "signature.none"
        yield Finding(code=code, file=paths.STATEMENT, detail="the comparison is unsigned", refuses=refuses)
        return
    envelope = strictjson.load(paths.locate(root, paths.STATEMENT), paths.STATEMENT)
    schema.validate("envelope", envelope, paths.STATEMENT)
    if not trust.keys:
        detail = "signed, but no public key was given: nothing is said of who sealed it"
        yield Finding(code="signature.unchecked", file=paths.STATEMENT, detail=detail, refuses=False)
    elif not signing.signers(envelope, trust.keys):
        yield Finding(
            code="signature.untrusted", file=paths.STATEMENT, detail="no given key has signed this comparison"
        )
    if signing.payload_of(envelope) != strictjson.dumps(statement_document(root)):
        yield Finding(code="statement.differs", file=paths.STATEMENT, detail="what was signed is not what lies here")


def _content(root: Path, bundles: Mapping[str, Verification]) -> Iterator[Finding]:
    schedule = schema.load("controlled-schedule", paths.locate(root, SCHEDULE))
    sides = {side: EvidenceView(root / side) for side in SIDES}
    for code, detail in (*_completeness(schedule, sides), *_turns(schedule, sides), *_alike(schedule)):
        yield Finding(code=code, file=SCHEDULE, detail=detail)
    yield from _again(root, schedule, sides, bundles)


def _completeness(schedule: Mapping[str, Any], sides: Mapping[str, EvidenceView]) -> Iterator[tuple[str, str]]:
    runs, design = schedule["runs"], schedule["design"]  # 4
    keys = [(run["number"], run["subject"], run["profile"], run["round"]) for run in runs]
    planned = [(p.number, p.subject, p.profile, p.round) for p in planned_runs(design["profiles"], design["rounds"])]
    if keys != planned:
        yield "schedule.plan", "the runs are not those of the design, once each, in its order"
    for run in runs:
        outcomes = [attempt["outcome"] for attempt in run["attempts"]]
        if outcomes.count("ok") != 1 or outcomes[-1] != "ok":
            yield "schedule.missing", f"run {run['number']} has not exactly one success, its last attempt"
    for side in SIDES:
        claimed = Counter(a["session"] for run in runs if run["subject"] == side for a in run["attempts"])
        evidence = sides[side]
        there = {document["number"] for document in (*evidence.sessions, *evidence.interruptions)}
        if set(claimed) != there or any(count > 1 for count in claimed.values()):
            yield "schedule.unowned", f"sessions of bundle {side.upper()} and attempts do not correspond one to one"
        names = {(run["profile"], run["round"]) for run in runs if run["subject"] == side}
        held = {(record.profile, record.round) for record in evidence.all_records}
        if names != held:
            yield "schedule.unowned", f"bundle {side.upper()} holds rounds that no run owns, or lacks some"


def _turns(schedule: Mapping[str, Any], sides: Mapping[str, EvidenceView]) -> Iterator[tuple[str, str]]:
    attempts = [(run, attempt) for run in schedule["runs"] for attempt in run["attempts"]]  # 5
    for (_, left), (run, right) in pairwise(attempts):
        if _moment(left["ended_utc"] or left["started_utc"]) > _moment(right["started_utc"]):
            yield "schedule.order", f"run {run['number']} began before the one before it had ended"
    for run, attempt in attempts:
        evidence = sides[run["subject"]]
        zero = _moment(evidence.document(paths.PHASES)["clock"]["zero_utc"])
        for edge in ("started", "ended"):
            ns, utc = attempt[f"{edge}_ns"], attempt[f"{edge}_utc"]
            if ns is not None and abs(zero + timedelta(microseconds=ns / 1e3) - _moment(utc)) > _SLACK:
                yield "schedule.order", f"run {run['number']}: its two clocks do not agree"
        if attempt["outcome"] == "ok" and not _encloses(run, attempt, evidence):
            yield "schedule.session", f"run {run['number']}: what it measured does not lie in its session and its time"


def _encloses(run: Mapping[str, Any], attempt: Mapping[str, Any], evidence: EvidenceView) -> bool:
    session = next((item for item in evidence.sessions if item["number"] == attempt["session"]), None)
    phases = [p for p in evidence.phases if (p["profile"], p["round"]) == (run["profile"], run["round"])]
    if session is None or not phases or attempt["ended_ns"] is None:
        return False
    first, last = min(p["start_ns"] for p in phases), max(p["end_ns"] for p in phases)
    return bool(
        attempt["started_ns"] <= session["started_ns"] <= session["ready_ns"] <= first <= last <= attempt["ended_ns"]
    )


def _alike(schedule: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    a, b = (schedule["hashes"][side] for side in SIDES)  # 6
    allowed = set(schedule["design"]["allow"])
    for name in sorted(a):
        aspects = {_ASPECTS[name]} if name in _ASPECTS else set(_ASPECTS.values())
        if a[name] != b[name] and not aspects & allowed:
            yield "schedule.unlike", f"both sides were asked other {name}"


def _again(
    root: Path,
    schedule: Mapping[str, Any],
    sides: Mapping[str, EvidenceView],
    bundles: Mapping[str, Verification],
) -> Iterator[Finding]:
    again = schedule_document(  # 7
        sides,
        {side: schedule["subjects"][side]["asked_for"] for side in SIDES},
        comparison_id=schedule["comparison_id"],
        times=(schedule["started_utc"], schedule["ended_utc"]),
        attempts={run["number"]: run["attempts"] for run in schedule["runs"]},
        design=schedule["design"],
    )
    if strictjson.dumps(again) != strictjson.dumps(schedule):
        detail = "what it says of the bundles is not what they give"
        yield Finding(code="schedule.differs", file=SCHEDULE, detail=detail)
    asked = Asked(within=schedule["design"]["within"], allow=frozenset(schedule["design"]["allow"]))
    pairs = [((sides["a"], bundles["a"]), (sides["b"], bundles["b"]))]
    sealed = schema.load("comparison", paths.locate(root, COMPARISON))
    if any(item.sealed is None for item in bundles.values()) or _plain(compare(pairs, asked)) != _plain(sealed):
        yield Finding(code="comparison.differs", file=COMPARISON, detail="not the comparison that the bundles give")


def _plain(comparison: Mapping[str, Any]) -> dict[str, Any]:
    """Without the verifier's notes on each bundle: they depend on the keys that the caller has."""
    sides = {
        side: {**comparison[side], "bundles": [{**item, "notes": []} for item in comparison[side]["bundles"]]}
        for side in SIDES
    }
    return {**comparison, **sides}


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
