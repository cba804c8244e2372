"""Plausibility of time: phases, clocks and telemetry.

1. Each round of each profile has one measured phase (and one warm-up phase where it was warmed up), no other round has.
2. A phase covers all its requests and counts them.
3. A phase is at least as long as its longest request, and long enough for all of them at that concurrency.
4. Phases are in order; their two clocks agree; all lie between the start and the end of the run.
5. Where a process was qualified there is telemetry, its samples are in order, and they cover each measured phase: gaps
   over 200 ms make up at most 1 % of it and none exceeds 1 s; less than that is a note, because a busy machine is late.
6. From first to last sample of a session the subject used no more processor time than the machine has.
7. Memory is that of a process that holds the model: never under 8 MiB, and at its peak at least half the weights' size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from qualification import paths
from qualification.bench.raw import RequestRecord, TelemetrySample
from qualification.evidence_view import EvidenceView
from qualification.verify.findings import Finding

Phase = Mapping[str, Any]
SPACING_NS: Final = 200_000_000
LONGEST_GAP_NS: Final = 1_000_000_000
GAP_SHARE: Final = 100  # gaps may make up one part in this many
LEAST_MEMORY: Final = 8 * 1024 * 1024
CLOCK_SLACK: Final = timedelta(seconds=2)


def check(evidence: EvidenceView) -> Iterator[Finding]:
    """Findings of the seven steps."""
    for code, detail in (*_rounds(evidence), *_clocks(evidence)):
        yield Finding(code=code, file=paths.PHASES, detail=detail)
    yield from _telemetry(evidence)


def _rounds(evidence: EvidenceView) -> Iterator[tuple[str, str]]:
    planned = {
        (kind, profile["name"], turn): profile
        for profile in evidence.run["profiles"]
        for turn in range(profile["rounds"])
        for kind in ("measure", "warmup")
        if kind == "measure" or profile["warmup_requests"]
    }
    loaded = [phase for phase in evidence.phases if phase["kind"] in ("measure", "warmup")]
    keys = [(phase["kind"], phase["profile"], phase["round"]) for phase in loaded]
    for key in sorted(planned.keys() - set(keys)):  # 1
        yield "phase.missing", f"no {key[0]} phase of {key[1]}, round {key[2]}"
    if len(set(keys)) < len(keys) or set(keys) - planned.keys():
        yield "phase.missing", "a phase appears twice, or belongs to no round of the run"
    for key, phase in zip(keys, loaded, strict=True):
        if key in planned:
            yield from _one(phase, planned[key]["concurrency"], _requests_of(phase, evidence))


def _requests_of(phase: Phase, evidence: EvidenceView) -> list[RequestRecord]:
    records = evidence.records(profile=phase["profile"], phase=phase["kind"])
    return [record for record in records if record.round == phase["round"]]


def _one(phase: Phase, concurrency: int, records: Sequence[RequestRecord]) -> Iterator[tuple[str, str]]:
    name = f"{phase['kind']} phase of {phase['profile']}, round {phase['round']}"
    window = phase["end_ns"] - phase["start_ns"]
    walls = [record.end_ns - record.t0_ns for record in records]
    if any(r.t0_ns < phase["start_ns"] or r.end_ns > phase["end_ns"] for r in records):  # 2
        yield "phase.cover", f"{name}: a request lies outside of it"
    if phase["requests"] != len(records):
        yield "phase.requests", f"{name}: counts {phase['requests']} requests, the raw records have {len(records)}"
    if walls and (window < max(walls) or sum(walls) > window * concurrency):  # 3
        yield "phase.too-short", f"{name}: shorter than its requests allow at concurrency {concurrency}"


def _clocks(evidence: EvidenceView) -> Iterator[tuple[str, str]]:
    run, document = evidence.run, evidence.document(paths.PHASES)
    zero = _moment(document["clock"]["zero_utc"])
    begin, end = _moment(run["started_utc"]) - CLOCK_SLACK, _moment(run["ended_utc"]) + CLOCK_SLACK
    for phase in document["phases"]:  # 4
        if phase["start_ns"] > phase["end_ns"]:
            yield "phase.clock", f"{phase['name']}: ends before it starts"
        for edge in ("start", "end"):
            utc = _moment(phase[f"{edge}_utc"])
            if abs(zero + timedelta(microseconds=phase[f"{edge}_ns"] / 1e3) - utc) > CLOCK_SLACK:
                yield "phase.clock", f"{phase['name']}: its {edge} differs between the two clocks"
            if not begin <= utc <= end:
                yield "phase.clock", f"{phase['name']}: its {edge} lies outside the run"
    if any(left["start_ns"] > right["start_ns"] for left, right in pairwise(document["phases"])):
        yield "phase.clock", "phases are not in order of their start"


def _telemetry(evidence: EvidenceView) -> Iterator[Finding]:
    samples = evidence.telemetry
    if not samples:  # 5
        if evidence.run["subject"]["kind"] == "process":
            detail = "a process was qualified and nothing was sampled"
            yield Finding(code="telemetry.missing", file=paths.TELEMETRY, detail=detail)
        return
    if any(left.at_ns >= right.at_ns for left, right in pairwise(samples)):
        yield Finding(code="telemetry.order", file=paths.TELEMETRY, detail="samples are out of order")
    for phase in evidence.phases:
        if phase["kind"] == "measure":
            yield from coverage(phase, [sample.at_ns for sample in samples])
    for part in evidence.telemetry_by_session:
        yield from _processors(part, evidence)
    yield from _memory(samples, evidence)


def coverage(phase: Phase, moments: Sequence[int]) -> Iterator[Finding]:
    """Gaps between `moments` (nanoseconds, in order) inside a phase, its edges included."""
    start, end = phase["start_ns"], phase["end_ns"]
    inside = [moment for moment in moments if start < moment < end]
    before = max((moment for moment in moments if moment <= start), default=None)
    after = min((moment for moment in moments if moment >= end), default=None)
    edges = [start if before is None or start - before <= SPACING_NS else before]
    edges += [*inside, end if after is None or after - end <= SPACING_NS else after]
    gaps = [right - left for left, right in pairwise(edges) if right - left > SPACING_NS]
    if not gaps:
        return
    heavy = sum(gaps) * GAP_SHARE > end - start or max(gaps) > LONGEST_GAP_NS
    where = f"{phase['name']}: {len(gaps)} gaps over 200 ms, the longest {max(gaps) / 1e6:.0f} ms"
    code = "telemetry.cover" if heavy else "telemetry.jitter"
    yield Finding(code=code, file=paths.TELEMETRY, detail=where, refuses=heavy)


def _processors(samples: Sequence[TelemetrySample], evidence: EvidenceView) -> Iterator[Finding]:
    if not samples:
        return
    cpus = evidence.document(paths.ENVIRONMENT)["machine"]["cpus"]
    spent, passed = samples[-1].cpu_ns - samples[0].cpu_ns, samples[-1].at_ns - samples[0].at_ns
    if spent > cpus * (passed + SPACING_NS):  # 6
        detail = f"{spent / 1e9:.1f} s of processor time in {passed / 1e9:.1f} s on {cpus} processors"
        yield Finding(code="telemetry.cpu", file=paths.TELEMETRY, detail=detail)


def _memory(samples: Sequence[TelemetrySample], evidence: EvidenceView) -> Iterator[Finding]:
    if min(sample.rss_bytes for sample in samples) < LEAST_MEMORY:  # 7
        detail = "a sample under 8 MiB: no engine runs in so little"
        yield Finding(code="telemetry.memory", file=paths.TELEMETRY, detail=detail)
    files = evidence.document(paths.IDENTITY)["files"]
    weights = sum(item["bytes"] or 0 for item in files if item["role"] == "weights")
    peak = max(sample.rss_bytes + _on_accelerators(sample) for sample in samples)
    if peak * 2 < weights:
        detail = f"at its peak {peak} bytes, less than half of {weights} bytes of weights"
        yield Finding(code="telemetry.memory", file=paths.TELEMETRY, detail=detail)


def _on_accelerators(sample: TelemetrySample) -> int:
    return sum(gpu.process_memory_bytes or gpu.memory_used_bytes or 0 for gpu in sample.gpus)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
