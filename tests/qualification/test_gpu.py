"""Accelerator samples from a driver that tells, refuses, or is not there: a stand-in that speaks the library's names."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from qualification.gpu import Gpus


class Refused(Exception):
    """What the library raises."""


def process(pid: int, used: int | None) -> SimpleNamespace:
    return SimpleNamespace(pid=pid, usedGpuMemory=used)


def refuse(*_: object) -> None:
    raise Refused("Not Supported")


FIGURES: dict[str, Callable[..., Any]] = {
    "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(used=7_000, total=9_000),
    "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=55, memory=20),
    "nvmlDeviceGetPowerUsage": lambda handle: 123_000,
    "nvmlDeviceGetTotalEnergyConsumption": lambda handle: 987_654_321,
    "nvmlDeviceGetComputeRunningProcesses": lambda handle: [process(5, 600), process(6, 40), process(9, 1)],
    "nvmlDeviceGetClockInfo": lambda handle, kind: {1: 1_500, 2: 2_619}[kind],
    "nvmlDeviceGetTemperature": lambda handle, kind: 61 + kind,
    "nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: 0x4 | 0x40,
}


def driver(**changes: Callable[..., Any]) -> Any:
    """One device, as a driver would tell of it; `changes` replace functions."""
    return SimpleNamespace(
        NVMLError=Refused,
        NVML_CLOCK_SM=1,
        NVML_CLOCK_MEM=2,
        NVML_TEMPERATURE_GPU=0,
        **{
            "nvmlInit": lambda: None,
            "nvmlDeviceGetCount": lambda: 1,
            "nvmlDeviceGetHandleByIndex": lambda index: f"handle {index}",
            "nvmlDeviceGetUUID": lambda handle: b"GPU-1",
            **FIGURES,
            **changes,
        },
    )


def test_every_figure_is_taken_and_memory_is_that_of_the_tree() -> None:
    gpus = Gpus(driver())
    (sample,) = gpus.sample({5, 6})
    assert (gpus.uuids, gpus.absent) == (("GPU-1",), None)
    assert (sample.uuid, sample.power_milliwatts, sample.energy_millijoules) == ("GPU-1", 123_000, 987_654_321)
    assert (sample.memory_used_bytes, sample.process_memory_bytes) == (7_000, 640)
    assert (sample.processes, sample.subject_processes, sample.utilization_percent) == (3, 2, 55)
    assert (sample.sm_clock_mhz, sample.memory_clock_mhz, sample.temperature_celsius) == (1_500, 2_619, 61)
    assert sample.throttle_reasons == 0x44


@pytest.mark.parametrize(
    ("function", "fields"),
    [
        ("nvmlDeviceGetMemoryInfo", {"memory_used_bytes"}),
        ("nvmlDeviceGetUtilizationRates", {"utilization_percent"}),
        ("nvmlDeviceGetPowerUsage", {"power_milliwatts"}),
        ("nvmlDeviceGetTotalEnergyConsumption", {"energy_millijoules"}),
        ("nvmlDeviceGetComputeRunningProcesses", {"process_memory_bytes", "processes", "subject_processes"}),
        ("nvmlDeviceGetClockInfo", {"sm_clock_mhz", "memory_clock_mhz"}),
        ("nvmlDeviceGetTemperature", {"temperature_celsius"}),
        ("nvmlDeviceGetCurrentClocksThrottleReasons", {"throttle_reasons"}),
    ],
)
def test_what_the_driver_refuses_is_none_and_not_zero_and_the_rest_stays(function: str, fields: set[str]) -> None:
    (sample,) = Gpus(driver(**{function: refuse})).sample({5})
    assert {name for name, value in vars(sample).items() if value is None} == fields


def test_every_figure_has_its_refusal() -> None:
    (sample,) = Gpus(driver(**dict.fromkeys(FIGURES, refuse))).sample({5})
    assert {name for name, value in vars(sample).items() if value is not None} == {"uuid"}


def test_a_tree_that_the_driver_does_not_know_holds_an_unknown_amount() -> None:
    (sample,) = Gpus(driver()).sample({4_711})
    assert (sample.process_memory_bytes, sample.subject_processes, sample.processes) == (None, None, 3)


def test_a_driver_that_hides_the_memory_of_a_process_is_not_added_up() -> None:
    hidden = driver(nvmlDeviceGetComputeRunningProcesses=lambda handle: [process(5, 600), process(6, None)])
    (sample,) = Gpus(hidden).sample({5, 6})
    assert (sample.process_memory_bytes, sample.subject_processes) == (None, 2)


def test_an_accelerator_that_nobody_uses_has_no_other_processes() -> None:
    (sample,) = Gpus(driver(nvmlDeviceGetComputeRunningProcesses=lambda handle: [])).sample({5})
    assert (sample.processes, sample.subject_processes) == (0, 0)


def test_without_a_driver_there_is_nothing_to_list_and_a_reason() -> None:
    gpus = Gpus(driver(nvmlInit=refuse))
    assert (gpus.sample({1}), gpus.uuids, gpus.absent) == ((), (), "Refused: Not Supported")
