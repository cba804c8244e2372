"""The metric table: which numbers a summary holds, each with its derivation.

It is a pure function of the run's plan and the policy's languages, so that a verifier knows which numbers must be
there and a number that was left out is found. Ids begin with the profile's name in lower case, or with `run.` where a
number is about the run as a whole. What could not be measured stays in the table, with null and a reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from qualification import paths
from qualification.derivation import ALL_AUDIO, ALL_SAMPLES, PER_AUDIO_MINUTE
from qualification.results import Derivation, Outcome

_LATENCIES: Final = (
    ("rtf", "rtf", "ratio", "request wall / audio duration"),
    ("ttfa", "ttfa_ms", "ms", "time to first audio"),
    ("wall", "wall_ms", "ms", "request wall"),
    ("underrun", "underrun_ms", "ms", "longest wait of a player that starts with the first packet"),
)
_ESTIMATORS: Final = ("median", "mean", "p95", "p99", "max")


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A number that a summary must hold."""

    id: str
    title: str
    unit: str
    derivation: Derivation


def metrics_for(run: Mapping[str, Any], languages: Sequence[str]) -> tuple[Metric, ...]:
    """Every metric of a run, in the order of the summary."""
    return (
        *(metric for profile in run["profiles"] for metric in _of_profile(profile)),
        *_of_natural_ends(languages),
        *_of_audio(),
        *_of_machine(),
        *_of_gates(),
    )


def _of_profile(profile: Mapping[str, Any]) -> Iterator[Metric]:
    name, file = profile["name"], profile["samples"]
    measured = {"profile": name, "phase": "measure"}

    def metric(key: str, title: str, unit: str, field: str, estimator: str, **where: str) -> Metric:
        derivation = Derivation(file=file, field=field, estimator=estimator, where={**measured, **where})
        return Metric(id=f"{name.lower()}.{key}", title=f"{name}: {title}", unit=unit, derivation=derivation)

    yield metric("warmup", "warm-up requests, excluded", "count", "request_id", "count", phase="warmup")
    yield metric("requests", "measured requests", "count", "request_id", "count")
    yield metric("succeeded", "succeeded", "count", "succeeded", "sum")
    yield metric("failed", "failed", "count", "failed", "sum")
    yield metric("failure_rate", "share that failed", "share", "failed", "share")
    yield metric("unnatural_rate", "share that did not end naturally", "share", "unnatural", "share")
    yield metric("scenario_wall", "scenario wall", "s", "request_id", "span")
    yield metric("audio", "audio delivered", "s", "audio_s", "sum")
    yield metric("rtf.aggregate", "scenario wall / audio delivered", "ratio", "audio_s", "span_per_sum")
    yield metric("throughput.audio", "audio a second", "s/s", "audio_s", "sum_per_span")
    yield metric("throughput.requests", "successes a second", "1/s", "succeeded", "sum_per_span")
    for key, field, unit, title in _LATENCIES:
        for estimator in _ESTIMATORS:
            yield metric(f"{key}.{estimator}", f"{title}, {estimator}", unit, field, estimator, outcome="ok")
    yield metric("underrun.rate", "share of streams with an underrun", "share", "underran", "share", outcome="ok")
    yield metric("frames", "codec frames delivered", "count", "frames", "sum", outcome="ok")
    yield metric("packets", "packets delivered", "count", "packets", "sum", outcome="ok")
    yield from _of_window(name, measured)


def _of_window(name: str, window: Mapping[str, str]) -> Iterator[Metric]:
    for key, title, unit, field, estimator in (
        ("telemetry.gap.max", "longest stretch without a sample", "ms", "gap_ms", "max"),
        ("memory.rss.peak", "peak resident memory", "bytes", "rss_bytes", "max"),
        ("memory.pss.peak", "peak proportional memory", "bytes", "pss_bytes", "max"),
        ("cpu", "processor time", "s", "cpu_s", "increase"),
        ("others.cpu", "processors busy with other work", "processors", "others_cpu_s", "increase_per_span"),
        ("cpu.power.mean", "mean power of the processor packages", "W", "package_energy_j", "increase_per_span"),
        ("cpu.energy", "energy of the processor packages", "J", "package_energy_j", "increase"),
        ("cpu.energy.per_minute", "the same for a minute of audio", "J/min", "package_energy_j", PER_AUDIO_MINUTE),
        ("gpu.memory.peak", "peak memory of the subject on an accelerator", "bytes", "gpu_process_memory_bytes", "max"),
        ("gpu.utilization.mean", "mean load of an accelerator", "%", "gpu_utilization_percent", "mean"),
        ("gpu.sm_clock.least", "least processor clock of an accelerator", "MHz", "gpu_sm_clock_mhz", "min"),
        ("gpu.memory_clock.least", "least memory clock of an accelerator", "MHz", "gpu_memory_clock_mhz", "min"),
        ("gpu.temperature.peak", "peak temperature of an accelerator", "°C", "gpu_temperature_c", "max"),
        ("gpu.throttled", "share of samples throttled by power or heat", "share", "gpu_throttled", "mean"),
        ("gpu.others", "most other processes on an accelerator", "count", "gpu_others", "max"),
        ("gpu.power.mean", "mean power of an accelerator", "W", "gpu_power_w", "time_mean"),
        ("gpu.power.peak", "peak power of an accelerator", "W", "gpu_power_w", "max"),
        ("gpu.energy", "energy of all accelerators", "J", "gpu_energy_j", "increase"),
        ("gpu.energy.per_minute", "the same for a minute of audio", "J/min", "gpu_energy_j", PER_AUDIO_MINUTE),
    ):
        derivation = Derivation(file=paths.TELEMETRY, field=field, estimator=estimator, where=dict(window))
        yield Metric(id=f"{name.lower()}.{key}", title=f"{name}: {title}", unit=unit, derivation=derivation)


def _of_natural_ends(languages: Sequence[str]) -> Iterator[Metric]:
    def metric(key: str, title: str, unit: str, field: str, estimator: str, **where: str) -> Metric:
        derivation = Derivation(file=ALL_SAMPLES, field=field, estimator=estimator, where={"phase": "measure", **where})
        return Metric(id=f"run.ends.{key}", title=title, unit=unit, derivation=derivation)

    yield metric("requests", "measured requests of all profiles", "count", "request_id", "count")
    yield metric("natural", "ended naturally", "count", "natural", "sum")
    yield metric("unnatural_rate", "share that did not end naturally", "share", "unnatural", "share")
    yield metric(
        "languages", "languages that ended naturally", "count", "language", "unique", outcome="ok", finish_reason="stop"
    )
    for language in languages:
        key = language.lower()
        yield metric(
            f"{key}.requests", f"{language}: measured requests", "count", "request_id", "count", language=language
        )
        yield metric(f"{key}.natural", f"{language}: ended naturally", "count", "natural", "sum", language=language)


def _of_audio() -> Iterator[Metric]:
    for key, title, unit, field, estimator in (
        ("files", "stored utterances", "count", "pcm_sha256", "count"),
        ("distinct", "distinct stored utterances", "count", "pcm_sha256", "unique"),
        ("seconds", "stored audio", "s", "seconds", "sum"),
        ("seconds.shortest", "shortest stored utterance", "s", "seconds", "min"),
        ("seconds.longest", "longest stored utterance", "s", "seconds", "max"),
        ("peak.least", "least peak, share of full scale", "share", "peak", "min"),
        ("peak.most", "largest peak, share of full scale", "share", "peak", "max"),
        ("rms.median", "median loudness, share of full scale", "share", "rms", "median"),
        ("clipped", "samples at full scale", "count", "clipped_samples", "sum"),
        ("clipped.worst", "largest share of samples at full scale", "share", "clipped_fraction", "max"),
    ):
        derivation = Derivation(file=ALL_AUDIO, field=field, estimator=estimator)
        yield Metric(id=f"run.audio.{key}", title=title, unit=unit, derivation=derivation)


def _of_machine() -> Iterator[Metric]:
    for key, title, unit, field, estimator in (
        ("memory.rss.peak", "peak resident memory of the subject", "bytes", "rss_bytes", "max"),
        ("memory.pss.peak", "peak proportional memory of the subject", "bytes", "pss_bytes", "max"),
        ("cpu", "processor time of the subject", "s", "cpu_s", "increase"),
        ("processes.most", "most processes of the subject", "count", "processes", "max"),
        ("gpu.memory.peak", "peak memory in use on an accelerator", "bytes", "gpu_memory_bytes", "max"),
        ("gpu.power.peak", "peak power of an accelerator", "W", "gpu_power_w", "max"),
    ):
        derivation = Derivation(file=paths.TELEMETRY, field=field, estimator=estimator)
        yield Metric(id=f"run.{key}", title=title, unit=unit, derivation=derivation)
    derivation = Derivation(file=paths.TELEMETRY, field="gap_ms", estimator="max", where={"phase": "measure"})
    title = "longest stretch of a measured phase without a sample"
    yield Metric(id="run.telemetry.gap.max", title=title, unit="ms", derivation=derivation)
    yield from _of_idle_machine()


def _of_idle_machine() -> Iterator[Metric]:
    for key, title, unit, field, estimator in (
        ("telemetry", "samples", "count", "at_ns", "count"),
        ("others.cpu", "processors busy", "processors", "others_cpu_s", "increase_per_span"),
        ("cpu.power.mean", "mean power of the processor packages", "W", "package_energy_j", "increase_per_span"),
        ("gpu.power.mean", "mean power of an accelerator", "W", "gpu_power_w", "time_mean"),
        ("gpu.memory.peak", "peak memory in use on an accelerator", "bytes", "gpu_memory_bytes", "max"),
        ("gpu.processes", "most processes on an accelerator", "count", "gpu_processes", "max"),
    ):
        derivation = Derivation(file=paths.TELEMETRY, field=field, estimator=estimator, where={"phase": "idle"})
        yield Metric(id=f"run.idle.{key}", title=f"idle machine: {title}", unit=unit, derivation=derivation)


def _of_gates() -> Iterator[Metric]:
    for outcome in Outcome:
        derivation = Derivation(file=paths.GATES, field="id", estimator="count", where={"outcome": outcome.value})
        title = f"gates that read {outcome.value}"
        yield Metric(id=f"run.gates.{outcome.value}", title=title, unit="count", derivation=derivation)
