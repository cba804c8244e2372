"""Which accelerators the driver lists, how they are set, and who else computes on them, once, before a run.

A machine without a driver gets a record that says so, with the reason; nothing is left out in silence.
The moving figures (power, clocks, memory) are telemetry, not environment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any


def capture_accelerators(own_processes: Collection[int], library: Any = None) -> dict[str, Any]:
    """The `accelerators` object of `environment.json`.

    `own_processes` are not competitors (the subject and its children). `library` is a module that speaks NVML, by
    default `pynvml`.
    """
    nvml = library or _nvml()
    if nvml is None:
        return _absent("the package nvidia-ml-py is not installed")
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:  # no library, no driver, or a driver that refuses
        return _absent(f"{type(error).__name__}: {error}")
    try:
        return {
            "probe": "nvml",
            "absent": None,
            "driver": _told(nvml, lambda: _text(nvml.nvmlSystemGetDriverVersion())),
            "cuda": _told(nvml, lambda: _cuda(nvml.nvmlSystemGetCudaDriverVersion())),
            "devices": [_device(nvml, index, own_processes) for index in range(nvml.nvmlDeviceGetCount())],
        }
    finally:
        nvml.nvmlShutdown()


def _nvml() -> Any:
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml


def _absent(reason: str) -> dict[str, Any]:
    return {"probe": "nvml", "absent": reason, "driver": None, "cuda": None, "devices": []}


def _device(nvml: Any, index: int, own_processes: Collection[int]) -> dict[str, Any]:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    running = _told(nvml, lambda: nvml.nvmlDeviceGetComputeRunningProcesses(handle))
    others = None if running is None else [process for process in running if process.pid not in own_processes]
    return {
        "index": index,
        "uuid": _text(nvml.nvmlDeviceGetUUID(handle)),
        "name": _told(nvml, lambda: _text(nvml.nvmlDeviceGetName(handle))),
        "memory_bytes": _told(nvml, lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).total)),
        "memory_used_bytes": _told(nvml, lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).used)),
        "power_limit_milliwatts": _told(nvml, lambda: int(nvml.nvmlDeviceGetEnforcedPowerLimit(handle))),
        "sm_clock_max_mhz": _told(nvml, lambda: int(nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM))),
        "throttle_reasons": _told(nvml, lambda: int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))),
        "competing_processes": None if others is None else len(others),
        "competing_memory_bytes": None if others is None else sum(process.usedGpuMemory or 0 for process in others),
    }


def _told(nvml: Any, ask: Callable[[], Any]) -> Any:
    """The driver's answer, or None where it does not give one."""
    try:
        return ask()
    except nvml.NVMLError:
        return None


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _cuda(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"
