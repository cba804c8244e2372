"""Evaluates a derivation: which rows of which file, which field of a row, which estimator.

Four kinds of file have rows: raw requests, telemetry (one row a sample, or one a sample and accelerator), stored clips,
gate results. A field is a stored value or a named pure function of one row; None means that the row has no such value
(no audio, no power sensor) and it is left out of `n`. Which derivations a summary holds is the business of `metrics`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, TypeVar

from qualification import paths
from qualification.bench.raw import BYTES_PER_SAMPLE, SAMPLE_RATE_HZ, GpuSample, RequestRecord, TelemetrySample
from qualification.clip import Clip
from qualification.errors import BundleError
from qualification.estimators import ESTIMATORS, Estimate, Row, Scalar, estimate
from qualification.evidence_view import EvidenceView
from qualification.results import Derivation

Value = Scalar | None
_Read = TypeVar("_Read")
ALL_SAMPLES: Final = "samples/*.jsonl"
ALL_AUDIO: Final = "audio/*.wav"


def evaluate(derivation: Derivation, evidence: EvidenceView) -> Estimate:
    """The number that a derivation yields from the files.

    Raises:
        BundleError: unknown file, field, filter or estimator; or any fault of the file itself.
    """
    if derivation.estimator not in ESTIMATORS:
        raise BundleError(f"derivation of {derivation.field}: estimator {derivation.estimator!r} is unknown")
    return estimate(derivation.estimator, list(_rows(derivation, evidence)))


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


def _underrun_ms(record: RequestRecord) -> float | None:
    late = underrun_ns(record)
    return None if late is None else late / 1e6


def _underran(record: RequestRecord) -> int | None:
    late = underrun_ns(record)
    return None if late is None else int(late > 0)


REQUEST_FIELDS: Final[Mapping[str, Callable[[RequestRecord], Value]]] = {
    "request_id": lambda r: r.request_id,
    "language": lambda r: r.language,
    "succeeded": lambda r: int(r.ok),
    "failed": lambda r: int(not r.ok),
    "natural": lambda r: int(r.ok and r.finish_reason == "stop"),
    "unnatural": lambda r: int(not (r.ok and r.finish_reason == "stop")),
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
    "rss_bytes": lambda s: s.rss_bytes,
    "cpu_ns": lambda s: s.cpu_ns,
    "cpu_s": lambda s: s.cpu_ns / 1e9,
    "processes": lambda s: s.processes,
    "package_energy_j": lambda s: None if s.package_energy_microjoules is None else s.package_energy_microjoules / 1e6,
}
GPU_FIELDS: Final[Mapping[str, Callable[[GpuSample], Value]]] = {
    "gpu_power_w": lambda g: None if g.power_milliwatts is None else g.power_milliwatts / 1e3,
    "gpu_memory_bytes": lambda g: g.memory_used_bytes,
    "gpu_process_memory_bytes": lambda g: g.process_memory_bytes,
    "gpu_utilization_percent": lambda g: g.utilization_percent,
    "gpu_sm_clock_mhz": lambda g: g.sm_clock_mhz,
}
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
    if derivation.where:
        windows = [evidence.telemetry_between(*window) for window in _windows(derivation.where, evidence.phases)]
    else:
        windows = list(evidence.telemetry_by_session)
    for number, samples in enumerate(windows):
        for sample in samples:
            yield from _sample_rows(derivation, sample, number)


def _sample_rows(derivation: Derivation, sample: TelemetrySample, window: int) -> Iterator[Row]:
    if derivation.field in GPU_FIELDS:
        for gpu in sample.gpus:
            yield from _row(GPU_FIELDS[derivation.field](gpu), (window, gpu.uuid), sample.at_ns, sample.at_ns)
    else:
        yield from _row(_field(TELEMETRY_FIELDS, derivation)(sample), window, sample.at_ns, sample.at_ns)


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
