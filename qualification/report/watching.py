"""Telemetry as the report shows it: lanes over the time of the run, the figures of each profile, and what was not there.

A lane with many samples is thinned to what a screen can show; of each stretch the largest value stays, so that a peak
is never smoothed away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from markupsafe import Markup

from qualification import paths
from qualification.bench.raw import GpuSample, TelemetrySample
from qualification.evidence_view import EvidenceView
from qualification.report import charts
from qualification.report.profiles import ProfileView
from qualification.report.words import figure, plural

Points = list[tuple[float, float]]
MOST_POINTS: Final = 900
_REASONS: Final = (
    (0x1, "idle"), (0x2, "clocks as set"), (0x4, "power cap"), (0x8, "hardware slowdown"), (0x10, "clocks in step"),
    (0x20, "heat, by the driver"), (0x40, "heat, by the hardware"), (0x80, "power brake"), (0x100, "clocks of a display"),
)  # fmt: skip
_SHADED: Final = {"measure": "measure", "idle": "idle"}
ROWS: Final = (
    ("telemetry.gap.max", "longest stretch without a sample"),
    ("memory.rss.peak", "peak resident memory"),
    ("memory.pss.peak", "peak proportional memory"),
    ("cpu", "processor time"),
    ("others.cpu", "processors busy with other work"),
    ("cpu.power.mean", "mean power of the processor packages"),
    ("cpu.energy.per_minute", "energy of the processor packages, a minute of audio"),
    ("gpu.memory.peak", "peak memory on an accelerator"),
    ("gpu.utilization.mean", "mean load of an accelerator"),
    ("gpu.sm_clock.least", "least processor clock"),
    ("gpu.memory_clock.least", "least memory clock"),
    ("gpu.temperature.peak", "peak temperature"),
    ("gpu.throttled", "share of samples throttled"),
    ("gpu.others", "most other processes on an accelerator"),
    ("gpu.power.mean", "mean power of an accelerator"),
    ("gpu.power.peak", "peak power of an accelerator"),
    ("gpu.energy.per_minute", "energy of all accelerators, a minute of audio"),
)


def picture(evidence: EvidenceView) -> Markup | None:
    """The lanes; None where there are too few samples to draw a line."""
    samples = evidence.telemetry
    if len(samples) < 2:
        return None
    lanes = [
        charts.Lane(
            name="memory",
            unit="bytes",
            lines=(
                ("memory", thinned(_points(samples, lambda s: s.rss_bytes))),
                ("pss", thinned(_points(samples, lambda s: s.pss_bytes))),
            ),
        ),
        charts.Lane(
            name="cores",
            unit="cores",
            lines=(
                ("cores", thinned(_rate(samples, lambda s: s.cpu_ns))),
                ("others", thinned(_rate(samples, _others))),
            ),
        ),
    ]
    return charts.telemetry([*lanes, *_accelerator_lanes(samples)], _bands(evidence))


def rows(profiles: Sequence[ProfileView]) -> list[tuple[str, list[str]]]:
    """Title and one cell a profile, of every figure that any profile has."""
    told = [row for row in ROWS if any(profile.value(row[0]) is not None for profile in profiles)]
    return [(title, [profile.shown(key) for profile in profiles]) for key, title in told]


def facts(evidence: EvidenceView) -> tuple[tuple[str, str], ...]:
    """How the sampling was done, what was idle before, and which sensors were not there."""
    if not evidence.samplers:
        return ()
    numbers = {number["id"]: number for number in evidence.document(paths.SUMMARY)["numbers"]}
    return (
        (
            "samples",
            _each(evidence, lambda r: f"{plural(r['samples'], 'sample')}, planned every {r['interval_ms']} ms"),
        ),
        ("proportional memory", _each(evidence, lambda r: f"planned every {r['slow_interval_ms']} ms")),
        ("priority of the sampler", _each(evidence, lambda r: f"nice {r['priority']}")),
        ("sampler ended", _each(evidence, lambda r: r["fault"] or r["ended"].replace("_", " "))),
        ("before the subject", _idle(numbers)),
        ("accelerator clocks held down by", _throttling(evidence)),
        ("energy of the processors", _each(evidence, lambda r: _sensor(r["sensors"]["package_energy"], "zones"))),
        ("energy of accelerators", _each(evidence, lambda r: _sensor(r["sensors"]["accelerators"], "uuids"))),
    )


def _each(evidence: EvidenceView, words: Callable[[Mapping[str, Any]], str]) -> str:
    """What the sessions say, each different thing once."""
    return "; ".join(dict.fromkeys(words(record) for record in evidence.samplers))


def _throttling(evidence: EvidenceView) -> str:
    """The driver's reasons in measured phases, each with the share of samples that it was in force."""
    told = [
        gpu.throttle_reasons
        for phase in evidence.phases
        if phase["kind"] == "measure"
        for sample in evidence.telemetry_between(phase["start_ns"], phase["end_ns"])
        for gpu in sample.gpus
        if gpu.throttle_reasons is not None
    ]
    shares = [(name, sum(1 for mask in told if mask & bit) / len(told)) for bit, name in _REASONS if told]
    seen = [f"{name} ({figure(share, 'share')} of samples)" for name, share in shares if share]
    return ", ".join(seen) or ("nothing" if told else "not told")


def thinned(points: Points) -> Points:
    """At most `MOST_POINTS`: of each stretch of neighbours the one with the largest value."""
    step = -(-len(points) // MOST_POINTS) or 1
    return [max(points[start : start + step], key=lambda point: point[1]) for start in range(0, len(points), step)]


def _points(samples: Iterable[TelemetrySample], read: Callable[[TelemetrySample], int | None]) -> Points:
    return [(sample.at_ns / 1e9, float(value)) for sample in samples if (value := read(sample)) is not None]


def _rate(samples: Iterable[TelemetrySample], read: Callable[[TelemetrySample], int | None]) -> Points:
    """Growth of a counter of nanoseconds a nanosecond: processors."""
    told = [(sample.at_ns, value) for sample in samples if (value := read(sample)) is not None]
    return [
        (later[0] / 1e9, max(0.0, (later[1] - sooner[1]) / (later[0] - sooner[0])))
        for sooner, later in pairwise(told)
        if later[0] > sooner[0]
    ]


def _others(sample: TelemetrySample) -> int | None:
    if sample.machine_cpu_ns is None or sample.cpu_ns is None:
        return None
    return sample.machine_cpu_ns - sample.cpu_ns - sample.harness_cpu_ns


def _accelerator_lanes(samples: Sequence[TelemetrySample]) -> list[charts.Lane]:
    """Power and clock, where a driver tells them; one line an accelerator."""
    kinds: tuple[tuple[str, str, float, Callable[[GpuSample], int | None]], ...] = (
        ("power", "W", 1e3, lambda gpu: gpu.power_milliwatts),
        ("clock", "MHz", 1.0, lambda gpu: gpu.sm_clock_mhz),
    )
    uuids = sorted({gpu.uuid for sample in samples for gpu in sample.gpus})
    lanes = []
    for name, unit, factor, read in kinds:
        lines = [(name, thinned(_of_gpu(samples, uuid, factor, read))) for uuid in uuids]
        if any(points for _, points in lines):
            lanes.append(charts.Lane(name=name, unit=unit, lines=tuple(lines)))
    return lanes


def _of_gpu(
    samples: Sequence[TelemetrySample], uuid: str, factor: float, read: Callable[[GpuSample], int | None]
) -> Points:
    return [
        (sample.at_ns / 1e9, value / factor)
        for sample in samples
        for gpu in sample.gpus
        if gpu.uuid == uuid and (value := read(gpu)) is not None
    ]


def _bands(evidence: EvidenceView) -> list[charts.Band]:
    return [
        charts.Band(
            label=str(phase["profile"] or phase["kind"]),
            style=_SHADED[phase["kind"]],
            start=phase["start_ns"] / 1e9,
            end=phase["end_ns"] / 1e9,
        )
        for phase in evidence.phases
        if phase["kind"] in _SHADED
    ]


def _idle(numbers: Mapping[str, Mapping[str, Any]]) -> str:
    told = [
        f"{figure(number['value'], number['unit'])} {words}"
        for key, words in (
            ("run.idle.others.cpu", "busy"),
            ("run.idle.cpu.power.mean", "in the packages"),
            ("run.idle.gpu.power.mean", "in an accelerator"),
        )
        if (number := numbers[key])["value"] is not None
    ]
    return ", ".join(told) or "not watched"


def _sensor(sensor: Mapping[str, Any], names: str) -> str:
    return f"not performed: {sensor['absent']}" if sensor["absent"] else ", ".join(sensor[names])
