"""Plausibility against the plan: did exactly the requests happen that `run.json` announces, under that load?

1. Each file of raw records belongs to one profile, and its records name that profile, its load and its concurrency.
2. Rounds and indexes of measured and of warm-up requests run from 0 without a gap or a repetition.
3. A round has entries x repeats measured requests; with `duration` at least that many, over the least time.
4. Each measured request has the entry, the language and the seed that the plan gives for its index.
5. Each round was warmed up with the announced number of requests.
6. Never more requests in flight than the concurrency; the requests of one wave were in flight together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from qualification import paths
from qualification.bench.raw import RequestRecord
from qualification.evidence_view import EvidenceView
from qualification.verify.findings import Finding

Profile = Mapping[str, Any]


def check(evidence: EvidenceView) -> Iterator[Finding]:
    """Findings of the six steps."""
    profiles = evidence.run["profiles"]
    names = [profile["name"] for profile in profiles]
    if len(set(names)) < len(names) or len({profile["samples"] for profile in profiles}) < len(names):
        yield Finding(code="plan.profile", file=paths.RUN, detail="two profiles share a name or a file of records")
    planned = {profile["samples"]: profile for profile in profiles}
    for path in sorted({*evidence.sample_files, *planned}):
        if path not in planned or path not in evidence.sample_files:
            detail = "raw records and profiles of the run do not correspond"
            yield Finding(code="plan.profile", file=path, detail=detail)
            continue
        for code, detail in _of_profile(planned[path], evidence, evidence.records_in(path)):
            yield Finding(code=code, file=path, detail=detail)


def _of_profile(
    profile: Profile, evidence: EvidenceView, records: Sequence[RequestRecord]
) -> Iterator[tuple[str, str]]:
    expected = (profile["name"], profile["load"], profile["concurrency"])  # 1
    for record in records:
        if (record.profile, record.load, record.concurrency) != expected:
            yield "plan.profile", f"{record.request_id}: not of profile {profile['name']} as run.json has it"
    if {record.round for record in records if record.measured} != set(range(profile["rounds"])):  # 2
        yield "plan.count", f"the measured rounds are not 0 to {profile['rounds'] - 1}"
    for turn in range(profile["rounds"]):
        of_round = [record for record in records if record.round == turn]
        measured = sorted((r for r in of_round if r.measured), key=lambda r: r.index)
        warm = sorted((r for r in of_round if not r.measured), key=lambda r: r.index)
        yield from _of_round(profile, turn, measured, warm)
        yield from _entries(profile, turn, measured, evidence)
        for part in (measured, warm):
            yield from _in_flight(profile, turn, part)


def _of_round(
    profile: Profile, turn: int, measured: Sequence[RequestRecord], warm: Sequence[RequestRecord]
) -> Iterator[tuple[str, str]]:
    for part in (measured, warm):  # 2
        if [record.index for record in part] != list(range(len(part))):
            yield "plan.index", f"round {turn}: indexes do not run from 0 without a gap"
    planned = len(profile["entries"]) * profile["repeats"]  # 3
    timed = profile["stop"] == "duration"
    if len(measured) < planned or (len(measured) > planned and not timed):
        yield "plan.count", f"round {turn}: {len(measured)} measured requests, the plan has {planned}"
    if timed and measured:
        seconds = (max(r.end_ns for r in measured) - min(r.t0_ns for r in measured)) / 1e9
        if seconds < profile["minimum_seconds"]:
            yield "plan.count", f"round {turn}: {seconds:.3f} s, the plan has at least {profile['minimum_seconds']} s"
    if len(warm) != profile["warmup_requests"]:  # 5
        yield "plan.count", f"round {turn}: {len(warm)} warm-up requests, the plan has {profile['warmup_requests']}"


def _entries(
    profile: Profile, turn: int, measured: Sequence[RequestRecord], evidence: EvidenceView
) -> Iterator[tuple[str, str]]:
    known = {entry.id: entry for entry in evidence.workload.entries}
    names = profile["entries"]
    unknown = sorted(set(names) - known.keys())
    if unknown:
        yield "plan.entry", f"the workload has no entry {', '.join(unknown)}"
        return
    for record in measured:  # 4
        entry = known[names[record.index % len(names)]]
        walk = record.index // len(names) + turn * profile["repeats"]
        seed = entry.seeds[walk % len(entry.seeds)] if profile["seeds"] == "rotate" else entry.seeds[0]
        if (record.workload_id, record.language, record.seed) != (entry.id, entry.language, seed):
            yield "plan.entry", f"{record.request_id}: not the entry, language and seed that the plan has for its index"


def _in_flight(profile: Profile, turn: int, part: Sequence[RequestRecord]) -> Iterator[tuple[str, str]]:
    edges = sorted([(r.t0_ns, 1) for r in part] + [(r.end_ns, -1) for r in part])  # 6; at one moment ends come first
    flying = most = 0
    for _, step in edges:
        flying += step
        most = max(most, flying)
    if most > profile["concurrency"]:
        yield "load.concurrency", f"round {turn}: {most} requests in flight at concurrency {profile['concurrency']}"
    if profile["load"] == "wave":
        for first in range(0, len(part), profile["concurrency"]):
            wave = part[first : first + profile["concurrency"]]
            if max(r.t0_ns for r in wave) > min(r.end_ns for r in wave):
                yield "load.wave", f"round {turn}: the wave from index {first} was not in flight together"
