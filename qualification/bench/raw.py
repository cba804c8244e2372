"""Raw records: one line a request, with every packet as the client saw it.

Times are nanoseconds since the run's monotonic zero (see `phases.json`); sizes are bytes; samples are mono PCM at 24 kHz.
Failures are records like any other. Nothing here is computed: statistics are pure functions of these lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

SAMPLE_RATE_HZ = 24_000
SAMPLES_PER_FRAME = 1_920
BYTES_PER_SAMPLE = 2


class RequestOutcome(StrEnum):
    """How one request ended, as the client saw it."""

    OK = "ok"
    REFUSED = "refused"  # a problem document before any audio
    STREAM_ERROR = "stream_error"  # an error part, a missing end, a gap or a broken boundary after the start
    TRANSPORT_ERROR = "transport_error"  # no or half an HTTP answer
    TIMEOUT = "timeout"


@dataclass(frozen=True, kw_only=True)
class Packet:
    """One audio part. `first_frame`, `first_sample`, `frames`, `samples`, `final` are the part's own headers;
    `bytes` is the size of the body that arrived, `at_ns` when its first byte did."""

    at_ns: int
    sequence: int
    first_frame: int
    first_sample: int
    frames: int
    samples: int
    bytes: int
    final: bool


@dataclass(frozen=True, kw_only=True)
class ServerMetrics:
    """The engine's own account in the end part, copied, not believed. None: not measured there."""

    queue_microseconds: int | None = None
    prefill_microseconds: int | None = None
    first_codec_frame_microseconds: int | None = None
    first_audio_microseconds: int | None = None
    wall_microseconds: int | None = None
    generated_codec_frames: int | None = None
    emitted_samples: int | None = None
    emitted_packets: int | None = None
    talker_gpu_microseconds: int | None = None
    codec_gpu_microseconds: int | None = None
    peak_request_device_bytes: int | None = None
    peak_request_host_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class RequestRecord:
    """One request of one profile.

    Attributes:
        request_id: UUID sent as `x-request-id`.
        phase: `warmup` (recorded, excluded) or `measure`.
        profile: name of a profile in `run.json`, such as `EOS` or `B3`.
        index: position in the plan of (profile, phase, round), from 0 without a gap.
        workload_id, language, seed: the workload entry, its language tag, and the seed that was sent.
        scheduled_ns: when the load profile wanted it sent; t0_ns: just before the first request byte.
        headers_ns: response headers complete; end_ns: last byte, or the failure.
        samples: PCM samples received; pcm_sha256: over all PCM bytes in order, null where nothing arrived.
        audio: bundle path of the stored WAV, or null.
    """

    request_id: str
    phase: str
    profile: str
    load: str
    concurrency: int
    round: int
    index: int
    workload_id: str
    language: str
    seed: int
    outcome: RequestOutcome
    http_status: int | None
    error_code: str | None
    error_detail: str | None
    scheduled_ns: int
    t0_ns: int
    headers_ns: int | None
    end_ns: int
    packets: tuple[Packet, ...]
    finish_reason: str | None
    echoed_seed: int | None
    samples: int
    pcm_sha256: str | None
    audio: str | None
    server_metrics: ServerMetrics | None

    @property
    def ok(self) -> bool:
        return self.outcome is RequestOutcome.OK

    @property
    def measured(self) -> bool:
        return self.phase == "measure"

    @property
    def wall_ns(self) -> int:
        """From t0 to the last byte; under open load (`poisson`) from the scheduled send."""
        return self.end_ns - (self.scheduled_ns if self.load == "poisson" else self.t0_ns)

    @property
    def ttfa_ns(self) -> int | None:
        """From t0 (open load: the scheduled send) to the first packet, or None without audio."""
        if not self.packets:
            return None
        return self.packets[0].at_ns - (self.scheduled_ns if self.load == "poisson" else self.t0_ns)

    @property
    def audio_seconds(self) -> float:
        return self.samples / SAMPLE_RATE_HZ

    def to_json(self) -> dict[str, Any]:
        """The object of one line of `samples/*.jsonl`."""
        document = dict(vars(self))
        document["outcome"] = self.outcome.value
        document["packets"] = [dict(vars(packet)) for packet in self.packets]
        document["server_metrics"] = dict(vars(self.server_metrics)) if self.server_metrics else None
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> RequestRecord:
        """Read an object that the `request-record` schema has accepted."""
        values = dict(document)
        values["outcome"] = RequestOutcome(values["outcome"])
        values["packets"] = tuple(Packet(**packet) for packet in values["packets"])
        metrics = values["server_metrics"]
        values["server_metrics"] = None if metrics is None else ServerMetrics(**metrics)
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class GpuSample:
    """One accelerator at one moment; None: the driver does not tell.

    Attributes:
        energy_millijoules: the driver's own counter. processes: all that compute there; subject_processes: those of
            the subject's tree, None where the driver knows other process ids than we do.
    """

    uuid: str
    power_milliwatts: int | None
    energy_millijoules: int | None
    memory_used_bytes: int | None
    process_memory_bytes: int | None
    processes: int | None
    subject_processes: int | None
    utilization_percent: int | None
    sm_clock_mhz: int | None
    memory_clock_mhz: int | None
    temperature_celsius: int | None
    throttle_reasons: int | None


@dataclass(frozen=True, kw_only=True)
class TelemetrySample:
    """The subject's process tree, the machine and the accelerators at one moment.

    Attributes:
        processes: of the subject; 0 before it was there, and then its figures are None.
        rss_bytes: resident memory summed over the tree; cpu_ns: user + system time of the tree so far.
        pss_bytes: the same with shared pages divided by their users; read more slowly, None in between.
        machine_cpu_ns: busy time of all processors so far; harness_cpu_ns: that of the harness and the sampler.
        package_energy_microjoules: the processor packages' counter, or None where it cannot be read.
    """

    at_ns: int
    processes: int
    rss_bytes: int | None
    pss_bytes: int | None
    cpu_ns: int | None
    machine_cpu_ns: int | None
    harness_cpu_ns: int
    package_energy_microjoules: int | None
    gpus: tuple[GpuSample, ...]

    def to_json(self) -> dict[str, Any]:
        """The object of one line of `telemetry.jsonl`."""
        return {**vars(self), "gpus": [dict(vars(gpu)) for gpu in self.gpus]}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> TelemetrySample:
        """Read an object that the `telemetry` schema has accepted."""
        values = dict(document)
        values["gpus"] = tuple(GpuSample(**gpu) for gpu in values["gpus"])
        return cls(**values)


def records_to_json(records: Iterable[RequestRecord]) -> list[dict[str, Any]]:
    """The lines of a samples file, in the order given."""
    return [record.to_json() for record in records]
