"""Evaluates a derivation: which rows of which file, which field of a row, which estimator.

Four kinds of file have rows: raw requests, telemetry (one row a sample, or one a sample and accelerator), stored clips,
gate results. A field is a stored value or a named pure function of one row; None means that the row has no such value
(no audio, no power sensor) and it is left out of `n`. Which derivations a summary holds is the business of `metrics`.

Counters of the telemetry are read from the samples that enclose each phase, so that nothing of a phase is left out: up
to one interval of sampling more at either end. One estimator looks at two files: `increase_per_audio_minute` divides
a counter's growth by the minutes of audio that the same phases delivered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, Final, TypeVar

from qualification import paths, spacing
from qualification.bench.raw import BYTES_PER_SAMPLE, SAMPLE_RATE_HZ, GpuSample, RequestRecord, TelemetrySample
from qualification.clip import Clip
from qualification.errors import BundleError
from qualification.estimators import ESTIMATORS, NO_BOUND, NO_ROWS, Estimate, Row, Scalar, estimate
from qualification.evidence_view import EvidenceView
from qualification.results import Derivation

Value = Scalar | None
_Read = TypeVar("_Read")
ALL_SAMPLES: Final = "samples/*.jsonl"
ALL_AUDIO: Final = "audio/*.wav"
PER_AUDIO_MINUTE: Final = "increase_per_audio_minute"
THROTTLED: Final = (
    0x4 | 0x8 | 0x20 | 0x40 | 0x80
)  # power cap, slowdown, heat (two), power brake; not idle, not a setting


def evaluate(derivation: Derivation, evidence: EvidenceView) -> Estimate:
    """The number that a derivation yields from the files.

    Raises:
        BundleError: unknown file, field, filter or estimator; or any fault of the file itself.
    """
    if derivation.estimator not in (*ESTIMATORS, PER_AUDIO_MINUTE):
        raise BundleError(f"derivation of {derivation.field}: estimator {derivation.estimator!r} is unknown")
    if derivation.estimator == PER_AUDIO_MINUTE:
        return _per_audio_minute(derivation, evidence)
    return estimate(derivation.estimator, list(_rows(derivation, evidence)))


def _per_audio_minute(derivation: Derivation, evidence: EvidenceView) -> Estimate:
    grown = estimate("increase", list(_rows(derivation, evidence)))
    audio = replace(derivation, file=ALL_SAMPLES, field="audio_s", estimator="sum")
    minutes = float(evaluate(audio, evidence).value or 0) / 60
    if grown.value is None or minutes == 0:
        return Estimate(value=None, n=grown.n, reason=grown.reason if grown.value is None else NO_ROWS)
    return Estimate(value=grown.value / minutes, n=grown.n, reason=NO_BOUND)


def underrun_ns(record: RequestRecord) -> int | None:
    """Longest wait of a player that starts with the first packet: max over packets of
    (arrival - first arrival - audio already delivered); 0 is perfect, None for fewer than two packets."""
    if len(record.packets) < 2:
        return None
    delivered = 0
    worst = 0
    for packet in record.packets:
        late = packet.at_ns - record.packets[0].at_ns - delivered * 1_000_000_000 // SAMPLE_RATE_HZ
        worst = max(worst, late)
        delivered += packet.bytes // BYTES_PER_SAMPLE
    return worst


def rtf(record: RequestRecord) -> float | None:
    """Request wall / audio duration from samples; None without audio."""
    return record.wall_ns / 1e9 / record.audio_seconds if record.samples else None


def _natural(record: RequestRecord, sign: int) -> int | None:
    """`sign` of a natural end, else the other of 0 and 1; None where sound came and nobody knows how it ended."""
    if record.ok and record.finish_reason is None:
        return None
    return sign if record.ok and record.finish_reason == "stop" else 1 - sign


def _underrun_ms(record: RequestRecord) -> float | None:
    late = underrun_ns(record)
    return None if late is None else late / 1e6


def _underran(record: RequestRecord) -> int | None:
    late = underrun_ns(record)
    return None if late is None else int(late > 0)


def _others_cpu_s(sample: TelemetrySample) -> float | None:
    """Processor time that neither the subject nor the harness used."""
    if sample.machine_cpu_ns is None:
        return None
    return (sample.machine_cpu_ns - (sample.cpu_ns or 0) - sample.harness_cpu_ns) / 1e9


def _others_on(gpu: GpuSample) -> int | None:
    """Processes on an accelerator that are not the subject's."""
    if gpu.processes is None or gpu.subject_processes is None:
        return None
    return gpu.processes - gpu.subject_processes


REQUEST_FIELDS: Final[Mapping[str, Callable[[RequestRecord], Value]]] = {
    "request_id": lambda r: r.request_id,
    "language": lambda r: r.language,
    "succeeded": lambda r: int(r.ok),
    "failed": lambda r: int(not r.ok),
    "natural": lambda r: _natural(r, 1),
    "unnatural": lambda r: _natural(r, 0),
    "wall_ms": lambda r: r.wall_ns / 1e6,
    "ttfa_ms": lambda r: None if r.ttfa_ns is None else r.ttfa_ns / 1e6,
    "rtf": rtf,
    "audio_s": lambda r: r.audio_seconds if r.ok else 0.0,
    "frames": lambda r: sum(packet.frames for packet in r.packets),
    "packets": lambda r: len(r.packets),
    "underrun_ms": _underrun_ms,
    "underran": _underran,
}
TELEMETRY_FIELDS: Final[Mapping[str, Callable[[TelemetrySample], Value]]] = {
    "at_ns": lambda s: s.at_ns,
    "rss_bytes": lambda s: s.rss_bytes,
    "pss_bytes": lambda s: s.pss_bytes,
    "cpu_ns": lambda s: s.cpu_ns,
    "cpu_s": lambda s: None if s.cpu_ns is None else s.cpu_ns / 1e9,
    "others_cpu_s": _others_cpu_s,
    "processes": lambda s: s.processes,
    "package_energy_j": lambda s: None if s.package_energy_microjoules is None else s.package_energy_microjoules / 1e6,
}
GPU_FIELDS: Final[Mapping[str, Callable[[GpuSample], Value]]] = {
    "gpu_power_w": lambda g: None if g.power_milliwatts is None else g.power_milliwatts / 1e3,
    "gpu_energy_j": lambda g: None if g.energy_millijoules is None else g.energy_millijoules / 1e3,
    "gpu_memory_bytes": lambda g: g.memory_used_bytes,
    "gpu_process_memory_bytes": lambda g: g.process_memory_bytes,
    "gpu_utilization_percent": lambda g: g.utilization_percent,
    "gpu_sm_clock_mhz": lambda g: g.sm_clock_mhz,
    "gpu_memory_clock_mhz": lambda g: g.memory_clock_mhz,
    "gpu_temperature_c": lambda g: g.temperature_celsius,
    "gpu_throttled": lambda g: None if g.throttle_reasons is None else int(g.throttle_reasons & THROTTLED != 0),
    "gpu_processes": lambda g: g.processes,
    "gpu_others": _others_on,
}
_COUNTERS: Final = frozenset({"cpu_ns", "cpu_s", "others_cpu_s", "package_energy_j", "gpu_energy_j"})
_GAP: Final = "gap_ms"
CLIP_FIELDS: Final[Mapping[str, Callable[[Clip], Value]]] = {
    "seconds": lambda c: c.seconds,
    "peak": lambda c: c.peak,
    "rms": lambda c: c.rms,
    "clipped_samples": lambda c: c.clipped,
    "clipped_fraction": lambda c: c.clipped_fraction,
    "pcm_sha256": lambda c: c.pcm_sha256,
}
_REQUEST_FILTERS: Final = frozenset(
    {"phase", "profile", "round", "outcome", "language", "load", "finish_reason", "workload_id"}
)


def _rows(derivation: Derivation, evidence: EvidenceView) -> Iterator[Row]:
    if derivation.file == paths.TELEMETRY:
        return _telemetry_rows(derivation, evidence)
    if derivation.file == paths.GATES:
        return _gate_rows(derivation, evidence)
    if derivation.file == ALL_AUDIO:
        return _clip_rows(derivation, evidence)
    return _request_rows(derivation, evidence)


def _request_rows(derivation: Derivation, evidence: EvidenceView) -> Iterator[Row]:
    files = [path for path in evidence.sample_files if fnmatchcase(path, derivation.file)]
    if not files:
        raise BundleError(f"derivation of {derivation.field}: no file of rows matches {derivation.file!r}")
    read = _field(REQUEST_FIELDS, derivation)
    _check_filters(derivation, _REQUEST_FILTERS)
    for path in files:
        for record in evidence.records_in(path):
            if all(getattr(record, key) == value for key, value in derivation.where.items()):
                group = (record.profile, record.phase, record.round)
                yield from _row(read(record), group, record.end_ns - record.wall_ns, record.end_ns)


def _telemetry_rows(derivation: Derivation, evidence: EvidenceView) -> Iterator[Row]:
    _check_filters(derivation, frozenset({"phase", "profile", "round"}))
    edges = list(_windows(derivation.where, evidence.phases)) if derivation.where else None
    if derivation.field == _GAP:
        yield from _gap_rows(edges or [], evidence)
        return
    read = evidence.telemetry_around if derivation.field in _COUNTERS else evidence.telemetry_between
    windows = list(evidence.telemetry_by_session) if edges is None else [read(*window) for window in edges]
    for number, samples in enumerate(windows):
        for sample in samples:
            yield from _sample_rows(derivation, sample, number)


def _sample_rows(derivation: Derivation, sample: TelemetrySample, window: int) -> Iterator[Row]:
    if derivation.field in GPU_FIELDS:
        for gpu in sample.gpus:
            yield from _row(GPU_FIELDS[derivation.field](gpu), (window, gpu.uuid), sample.at_ns, sample.at_ns)
    else:
        yield from _row(_field(TELEMETRY_FIELDS, derivation)(sample), window, sample.at_ns, sample.at_ns)


def _gap_rows(edges: Iterable[tuple[int, int]], evidence: EvidenceView) -> Iterator[Row]:
    """Stretches without a sample inside phases; none at all where nothing was sampled in the whole run."""
    for number, (start, end) in enumerate(edges if evidence.telemetry else ()):
        for gap in spacing.gaps(evidence.moments_of_session(start), start, end):
            yield Row(value=gap / 1e6, group=number)


def _windows(where: Mapping[str, Any], phases: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, int]]:
    for phase in phases:
        if all(phase["kind" if key == "phase" else key] == value for key, value in where.items()):
            yield phase["start_ns"], phase["end_ns"]


def _clip_rows(derivation: Derivation, evidence: EvidenceView) -> Iterator[Row]:
    _check_filters(derivation, frozenset())
    read = _field(CLIP_FIELDS, derivation)
    for path in evidence.audio_files:
        yield from _row(read(evidence.clip(path)), path, 0, 0)


def _gate_rows(derivation: Derivation, evidence: EvidenceView) -> Iterator[Row]:
    _check_filters(derivation, frozenset({"outcome"}))
    if derivation.field != "id":
        raise BundleError(f"derivation: gates.json has no field {derivation.field!r}; use id")
    for result in evidence.document(paths.GATES)["results"]:
        if all(result[key] == value for key, value in derivation.where.items()):
            yield Row(value=result["id"])


def _row(value: Value, group: object, start_ns: int, end_ns: int) -> Iterator[Row]:
    if value is not None:
        yield Row(value=value, group=group, start_ns=start_ns, end_ns=end_ns)


def _field(fields: Mapping[str, _Read], derivation: Derivation) -> _Read:
    if derivation.field not in fields:
        raise BundleError(f"derivation: {derivation.file} has no field {derivation.field!r}; use {', '.join(fields)}")
    return fields[derivation.field]


def _check_filters(derivation: Derivation, allowed: frozenset[str]) -> None:
    unknown = sorted(derivation.where.keys() - allowed)
    if unknown:
        raise BundleError(f"derivation of {derivation.field}: {derivation.file} cannot be filtered by {unknown[0]!r}")
