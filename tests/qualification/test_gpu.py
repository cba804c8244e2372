"""Accelerator samples from a driver that tells, refuses, or is not there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from qualification.gpu import Gpus


class Refused(pynvml.NVMLError):  # type: ignore[misc]  # the driver vendor ships no types
    """What the driver raises for a figure that it does not have."""


def driver(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """One device, as a driver would tell of it; `changes` replace functions."""

    def process(pid: int, used: int | None) -> SimpleNamespace:
        return SimpleNamespace(pid=pid, usedGpuMemory=used)

    functions = {
        "nvmlInit": lambda: None,
        "nvmlDeviceGetCount": lambda: 1,
        "nvmlDeviceGetHandleByIndex": lambda index: f"handle {index}",
        "nvmlDeviceGetUUID": lambda handle: "GPU-1",
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(used=7_000, total=9_000),
        "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=55),
        "nvmlDeviceGetPowerUsage": lambda handle: 123_000,
        "nvmlDeviceGetComputeRunningProcesses": lambda handle: [process(5, 600), process(6, 40), process(9, 1)],
        "nvmlDeviceGetClockInfo": lambda handle, kind: 1_500,
        "nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: 4,
        **changes,
    }
    for name, function in functions.items():
        monkeypatch.setattr(pynvml, name, function)


def refuse(*_: object) -> None:
    raise Refused(pynvml.NVML_ERROR_NOT_SUPPORTED)


def test_every_figure_is_taken_and_memory_is_that_of_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    driver(monkeypatch)
    (sample,) = Gpus().sample({5, 6})
    assert (sample.uuid, sample.power_milliwatts, sample.memory_used_bytes) == ("GPU-1", 123_000, 7_000)
    assert (sample.process_memory_bytes, sample.utilization_percent) == (640, 55)
    assert (sample.sm_clock_mhz, sample.throttle_reasons) == (1_500, 4)


def test_what_the_driver_refuses_is_none_and_not_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    driver(monkeypatch, nvmlDeviceGetPowerUsage=refuse, nvmlDeviceGetComputeRunningProcesses=refuse)
    (sample,) = Gpus().sample({5})
    assert (sample.power_milliwatts, sample.process_memory_bytes) == (None, None)
    assert sample.memory_used_bytes == 7_000


def test_a_tree_that_the_driver_does_not_know_holds_an_unknown_amount(monkeypatch: pytest.MonkeyPatch) -> None:
    driver(monkeypatch)
    (sample,) = Gpus().sample({4_711})
    assert sample.process_memory_bytes is None


def test_without_a_driver_there_is_nothing_to_list(monkeypatch: pytest.MonkeyPatch) -> None:
    driver(monkeypatch, nvmlInit=refuse)
    assert Gpus().sample({1}) == ()
