"""Plausibility of time: phases, clocks and telemetry.

1. Each round of each profile has one measured phase (and one warm-up phase where it was warmed up), no other round has.
2. A phase covers all its requests and counts them.
3. A phase is at least as long as its longest request, and long enough for all of them at that concurrency.
4. Phases are in order; their two clocks agree; all lie between the start and the end of the run.
5. Where a process was qualified there is telemetry, as many samples as each sampling process wrote, in order (one that was
   killed with its harness has no last word). A gap over
   the policy's limit is a failed gate and here a note; one over a second is no late sampler but a cut, unless the
   record of the sampling process tells of a fault, with which no gate passes.
6. From first to last sample of a session the subject used no more processor time than the machine has.
7. Memory is that of a process that holds the model: never under 8 MiB (proportional memory: 1 MiB), and at its peak at
   least half the weights' size; proportional memory is at its peak no larger than resident memory.
8. In a session, counters of energy and of the machine's processors never run backwards.
9. The mean power that an accelerator's energy counter gives is the mean of the power that was sampled, give or take
   15 % and the second by which a driver's averages may lag.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from qualification import paths, spacing
from qualification.bench.raw import GpuSample, RequestRecord, TelemetrySample
from qualification.evidence_view import EvidenceView
from qualification.verify.findings import Finding

Phase = Mapping[str, Any]
SPACING_NS: Final = 200_000_000
LONGEST_GAP_NS: Final = 1_000_000_000
LEAST_MEMORY: Final = 8 * 1024 * 1024
LEAST_PSS: Final = 1024 * 1024
POWER_SLACK: Final = 0.15
POWER_LAG_NS: Final = 1_000_000_000
CLOCK_SLACK: Final = timedelta(seconds=2)


def check(evidence: EvidenceView) -> Iterator[Finding]:
    """Findings of the nine steps."""
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
            yield _finding("telemetry.missing", "a process was qualified and nothing was sampled")
        return
    if any(left.at_ns >= right.at_ns for left, right in pairwise(samples)):
        yield _finding("telemetry.order", "samples are out of order")
    for detail in _lost(evidence):
        yield _finding("telemetry.count", detail)
    faulty = any(record["fault"] for record in evidence.samplers)
    for phase in evidence.phases:
        if phase["kind"] == "measure":
            yield from coverage(phase, evidence.moments_of_session(phase["start_ns"]), told=faulty)
    for part in evidence.telemetry_by_session:
        yield from _processors(part, evidence)
        yield from _backwards(part)
    if not faulty or any(sample.rss_bytes for sample in samples):
        yield from _memory(samples, evidence)
    yield from _power(samples)


def _finding(code: str, detail: str, *, refuses: bool = True) -> Finding:
    return Finding(code=code, file=paths.TELEMETRY, detail=detail, refuses=refuses)


def _lost(evidence: EvidenceView) -> Iterator[str]:
    owned = 0
    for record in evidence.samplers:
        low = bisect_left(evidence.moments, record["first_ns"])
        here = bisect_right(evidence.moments, record["last_ns"]) - low
        owned += here
        if here != record["samples"]:
            yield f"session {record['number']}: {record['samples']} samples were written and {here} are here"
    killed = any(end["cause"] == "killed" for end in evidence.interruptions)
    if owned != len(evidence.moments) and not killed:
        yield f"{len(evidence.moments) - owned} samples belong to no sampling process"


def coverage(phase: Phase, moments: Sequence[int], *, told: bool = False) -> Iterator[Finding]:
    """Gaps between `moments` (nanoseconds, in order) over a phase, its edges included; `told`: a fault explains them."""
    gaps = [gap for gap in spacing.gaps(moments, phase["start_ns"], phase["end_ns"]) if gap > SPACING_NS]
    if not gaps:
        return
    cut = max(gaps) > LONGEST_GAP_NS and not told
    where = f"{phase['name']}: {len(gaps)} gaps over 200 ms, the longest {max(gaps) / 1e6:.0f} ms"
    yield _finding("telemetry.cover" if cut else "telemetry.jitter", where, refuses=cut)


def _processors(samples: Sequence[TelemetrySample], evidence: EvidenceView) -> Iterator[Finding]:
    if not samples:
        return
    cpus = evidence.document(paths.ENVIRONMENT)["machine"]["cpus"]
    watched = [(sample.at_ns, sample.cpu_ns) for sample in samples if sample.cpu_ns is not None]
    if not watched:
        return
    spent, passed = watched[-1][1] - watched[0][1], watched[-1][0] - watched[0][0]
    if spent > cpus * (passed + SPACING_NS):  # 6
        detail = f"{spent / 1e9:.1f} s of processor time in {passed / 1e9:.1f} s on {cpus} processors"
        yield _finding("telemetry.cpu", detail)


def _memory(samples: Sequence[TelemetrySample], evidence: EvidenceView) -> Iterator[Finding]:
    resident = [sample.rss_bytes for sample in samples if sample.rss_bytes is not None]
    proportional = [sample.pss_bytes for sample in samples if sample.pss_bytes is not None]
    if min(resident, default=0) < LEAST_MEMORY:  # 7
        yield _finding("telemetry.memory", "a sample under 8 MiB: no engine runs in so little")
    if min(proportional, default=LEAST_PSS) < LEAST_PSS:
        yield _finding("telemetry.memory", "proportional memory under 1 MiB: no engine runs in so little")
    if max(proportional, default=0) > max(resident, default=0):
        yield _finding("telemetry.memory", "proportional memory is larger than resident memory")
    files = evidence.document(paths.IDENTITY)["files"]
    weights = sum(item["bytes"] or 0 for item in files if item["role"] == "weights")
    peak = max((sample.rss_bytes or 0) + _on_accelerators(sample) for sample in samples)
    if peak * 2 < weights:
        detail = f"at its peak {peak} bytes, less than half of {weights} bytes of weights"
        yield _finding("telemetry.memory", detail)


def _backwards(samples: Sequence[TelemetrySample]) -> Iterator[Finding]:
    counters: dict[str, list[int]] = {}  # 8
    for sample in samples:
        told = {"processor packages": sample.package_energy_microjoules, "processors": sample.machine_cpu_ns}
        told |= {gpu.uuid: gpu.energy_millijoules for gpu in sample.gpus}
        for name, value in told.items():
            if value is not None:
                counters.setdefault(name, []).append(value)
    for name, values in sorted(counters.items()):
        if any(left > right for left, right in pairwise(values)):
            yield _finding("telemetry.counter", f"the counter of {name} runs backwards")


def _power(samples: Sequence[TelemetrySample]) -> Iterator[Finding]:
    for uuid in sorted({gpu.uuid for sample in samples for gpu in sample.gpus}):  # 9
        told = [
            (at, gpu.energy_millijoules, gpu.power_milliwatts)
            for at, gpu in _of(uuid, samples)
            if gpu.energy_millijoules is not None and gpu.power_milliwatts is not None
        ]
        close = [(left, right) for left, right in pairwise(told) if right[0] - left[0] <= LONGEST_GAP_NS]
        passed = sum(right[0] - left[0] for left, right in close)
        if passed == 0:
            continue
        counted = sum(right[1] - left[1] for left, right in close) * 1e9 / passed  # millijoules a second
        sampled = sum((left[2] + right[2]) / 2 * (right[0] - left[0]) for left, right in close) / passed
        stretches = len(told) - len(close)
        if abs(counted - sampled) > sampled * (POWER_SLACK + POWER_LAG_NS * stretches / passed):
            detail = f"the energy counter of {uuid} gives {counted / 1e3:.1f} W, the power that was sampled "
            yield _finding("telemetry.power", f"{detail}{sampled / 1e3:.1f} W")


def _of(uuid: str, samples: Sequence[TelemetrySample]) -> Iterator[tuple[int, GpuSample]]:
    return ((sample.at_ns, gpu) for sample in samples for gpu in sample.gpus if gpu.uuid == uuid)


def _on_accelerators(sample: TelemetrySample) -> int:
    return sum(gpu.process_memory_bytes or gpu.memory_used_bytes or 0 for gpu in sample.gpus)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
