"""Plausibility of a run that was interrupted, resumed or gathered by turns: is every session told, and nothing mixed in?

1. Sessions and early ends are numbered from 1 without a gap; the run has as many session records as it says.
2. Reasons fit: the first is `first`, one after an early end is `resume`, any other is a `turn`.
3. Sessions follow each other; every measured unit lies within one of them.
4. Every session had the subject of the run.
5. What was set aside is there, has as many requests as was said, and nothing else lies in `abandoned/`.
6. No request that was set aside counts anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from qualification import paths
from qualification.evidence_view import EvidenceView
from qualification.verify.findings import Finding

Session = Mapping[str, Any]


def check(evidence: EvidenceView) -> Iterator[Finding]:
    """Findings of the six steps."""
    sessions = evidence.sessions
    for code, detail in (*_numbers(evidence), *_reasons(evidence), *_order(sessions)):
        yield Finding(code=code, file="records", detail=detail)
    for detail in _units(evidence):
        yield Finding(code="session.phase", file=paths.PHASES, detail=detail)
    subject = evidence.run["subject"]
    for session in sessions:  # 4
        if any(value != subject[key] for key, value in session["subject"].items() if _lasting(subject, key)):
            detail = f"session {session['number']} had another subject than the run"
            yield Finding(code="session.subject", file=_path(session), detail=detail)
    yield from _set_aside(evidence)


def _lasting(subject: Mapping[str, Any], key: str) -> bool:
    """A process is given another port at each start; all else stays."""
    return key != "endpoint" or subject["kind"] == "endpoint"


def _path(session: Session) -> str:
    return f"records/session-{session['number']:02}.json"


def _numbers(evidence: EvidenceView) -> Iterator[tuple[str, str]]:
    sessions, ends = evidence.sessions, evidence.interruptions
    for kind, documents in (("session", sessions), ("interruption", ends)):  # 1
        for document in documents:
            if not evidence.exists(f"records/{kind}-{document['number']:02}.json"):
                yield "session.number", f"a record of {kind} {document['number']} lies under another number"
    numbers = {document["number"] for document in (*sessions, *ends)}
    if numbers != set(range(1, len(numbers) + 1)) or len({s["number"] for s in sessions}) < len(sessions):
        yield "session.number", "sessions and early ends are not numbered from 1 without a gap"
    if len(sessions) != evidence.run["sessions"]:
        yield "session.number", f"{len(sessions)} records of sessions, the run says {evidence.run['sessions']}"


def _reasons(evidence: EvidenceView) -> Iterator[tuple[str, str]]:
    ended_early = {end["number"] for end in evidence.interruptions}
    for session in evidence.sessions:  # 2
        number = session["number"]
        fitting = "first" if number == 1 else "resume" if number - 1 in ended_early else "turn"
        if session["reason"] != fitting:
            yield "session.reason", f"session {number} says {session['reason']}, what lies here says {fitting}"
        if session["reason"] != "resume" and (session["set_aside"] or session["leftovers"]):
            yield "session.reason", f"session {number} set something aside, and no session before it had ended early"


def _order(sessions: tuple[Session, ...]) -> Iterator[tuple[str, str]]:
    for session in sessions:  # 3
        if session["started_ns"] > session["ready_ns"]:
            yield "session.order", f"session {session['number']} was ready before it began"
    for left, right in pairwise(sessions):
        if left["ready_ns"] > right["started_ns"]:
            yield "session.order", f"session {right['number']} began before the one before it was ready"


def _units(evidence: EvidenceView) -> Iterator[str]:
    starts = [(session["ready_ns"], session["number"]) for session in evidence.sessions]  # 3
    ends = [session["started_ns"] for session in evidence.sessions[1:]]
    found: dict[tuple[str, int], set[int | None]] = {}
    for phase in evidence.phases:
        if phase["kind"] not in ("measure", "warmup"):
            continue
        inside = [
            number
            for (ready, number), end in zip(starts, [*ends, None], strict=True)
            if ready <= phase["start_ns"] and (end is None or phase["end_ns"] <= end)
        ]
        found.setdefault((phase["profile"], phase["round"]), set()).add(inside[0] if inside else None)
    for (profile, turn), numbers in sorted(found.items()):
        if len(numbers) > 1 or None in numbers:
            yield f"{profile}, round {turn}: does not lie within one session"


def _set_aside(evidence: EvidenceView) -> Iterator[Finding]:
    units = [unit for session in evidence.sessions for unit in session["set_aside"]]
    named = [unit["path"] for unit in units if unit["path"] is not None]
    named += [path for session in evidence.sessions for path in session["leftovers"]]
    there = [path for path in evidence.walked.files if path.startswith(f"{paths.ABANDONED_DIRECTORY}/")]
    for path in sorted({*named, *there}):  # 5
        if path not in there or named.count(path) != 1:
            detail = "what was set aside and what the sessions say of it do not correspond"
            yield Finding(code="abandoned.unnamed", file=path, detail=detail)
    counted = {record.request_id for record in evidence.all_records}
    for unit in (unit for unit in units if unit["path"] in there):
        records = evidence.records_in(unit["path"])
        strangers = [r for r in records if (r.profile, r.round) != (unit["profile"], unit["round"])]
        if len(records) != unit["requests"] or strangers:
            detail = f"not the {unit['requests']} requests of {unit['profile']}, round {unit['round']}"
            yield Finding(code="abandoned.count", file=unit["path"], detail=detail)
        if any(record.request_id in counted for record in records):  # 6
            detail = "a request that was set aside is among those that count"
            yield Finding(code="abandoned.mixed", file=unit["path"], detail=detail)
