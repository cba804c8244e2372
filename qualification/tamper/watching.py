"""Tampers with telemetry: holes, counters, memory and power, in the raw samples and in what is said of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from qualification import paths
from qualification.sessions import sampler_path
from qualification.tamper.bench import Bench, Reseal
from qualification.tamper.changes import Tamper, case, document, gate, number, scaled, telemetry

_RECORD: Final = sampler_path(1)
Lines = list[dict[str, Any]]


def _cut(count: int) -> Callable[[Lines], None]:
    """Take `count` samples out of the middle."""

    def change(lines: Lines) -> None:
        del lines[len(lines) // 2 : len(lines) // 2 + count]

    return change


def _cut_and_counted(count: int) -> Callable[[Bench], None]:
    """A hole, and a sampling process that says it wrote no more than is left."""

    def change(bench: Bench) -> None:
        telemetry(_cut(count))(bench)
        bench.edit(_RECORD, lambda sampler: sampler.update(samples=sampler["samples"] - count))

    return change


def _each(change: Callable[[dict[str, Any]], object]) -> Callable[[Bench], None]:
    """Change every sample in which the subject is there."""
    return telemetry(lambda lines: [change(line) for line in lines if line["processes"]])


def _each_gpu(**factors: float) -> Callable[[Bench], None]:
    """Multiply fields of every accelerator in every sample."""

    def change(lines: Lines) -> None:
        for gpu in (gpu for line in lines for gpu in line["gpus"]):
            gpu.update({key: int(gpu[key] * factor) for key, factor in factors.items()})

    return telemetry(change)


def _backwards(field: str) -> Callable[[Bench], None]:
    """Let a counter fall once, in the middle."""
    return telemetry(lambda lines: lines[len(lines) // 2].update({field: 0}))


def _smaller_pss(line: dict[str, Any]) -> None:
    line.update(pss_bytes=line["pss_bytes"] and 1)


def _larger_pss(line: dict[str, Any]) -> None:
    line.update(pss_bytes=line["pss_bytes"] and line["pss_bytes"] * 9)


WATCHING: Final[tuple[Tamper, ...]] = (
    case("telemetry removed", "telemetry.missing", lambda b: (b.root / paths.TELEMETRY).unlink()),
    case("the sampling process is not told of", "telemetry.count", lambda b: (b.root / _RECORD).unlink()),
    case("telemetry with a hole", "telemetry.count", telemetry(_cut(3))),
    case("telemetry with a hole of which nothing is said", "gates.differ", _cut_and_counted(3), Reseal.MANIFEST),
    case("telemetry cut off for more than a second", "telemetry.cover", _cut_and_counted(16)),
    case("telemetry out of order", "telemetry.order", telemetry(lambda lines: lines.reverse())),
    case(
        "telemetry of another run",
        "binding.run",
        document(_RECORD, lambda d: d.update(run_id="another-run-0001")),
        Reseal.MANIFEST,
    ),
    case(
        "a hole called small enough",
        "gates.differ",
        gate("telemetry.spacing", observed=12.0),
        Reseal.MANIFEST,
    ),
    case(
        "a sampling process that died and is called sound",
        "gates.differ",
        document(_RECORD, lambda d: d.update(ended="crashed", fault="The telemetry process ended early.")),
        Reseal.MANIFEST,
    ),
    case(
        "more processor time than processors",
        "telemetry.cpu",
        _each(lambda line: line.update(cpu_ns=line["cpu_ns"] * 10)),
    ),
    case("proportional memory of one byte", "telemetry.memory", _each(_smaller_pss)),
    case("proportional memory above resident memory", "telemetry.memory", _each(_larger_pss)),
    case(
        "proportional peak of one byte in the summary",
        "summary.number-differs",
        number("b1.memory.pss.peak", value=1),
        Reseal.MANIFEST,
    ),
    case(
        "energy for a minute of audio scaled",
        "summary.number-differs",
        scaled("b6.gpu.energy.per_minute", 0.8),
        Reseal.MANIFEST,
    ),
    case(
        "energy of the processors scaled",
        "summary.number-differs",
        scaled("b3.cpu.energy.per_minute", 0.8),
        Reseal.MANIFEST,
    ),
    case("the accelerator's energy counter halved", "telemetry.power", _each_gpu(energy_millijoules=0.5)),
    case("the accelerator's power halved", "telemetry.power", _each_gpu(power_milliwatts=0.5)),
    case("an energy counter that runs backwards", "telemetry.counter", _backwards("package_energy_microjoules")),
    case("a machine whose processors run backwards", "telemetry.counter", _backwards("machine_cpu_ns")),
    case(
        "other work on the machine left out",
        "summary.number-differs",
        number("b1.others.cpu", value=0.0),
        Reseal.MANIFEST,
    ),
)
