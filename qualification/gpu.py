"""What the NVIDIA driver says of each accelerator, for telemetry: power, memory, utilisation, clock, throttle reasons.

Through the driver's own library (PyPI `nvidia-ml-py`), because starting `nvidia-smi` ten times a second would itself
load the machine. Without a driver there are no accelerators to list; a figure that the driver refuses is None, never
zero.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

import pynvml

from qualification.bench.raw import GpuSample

_T = TypeVar("_T")


class Gpus:
    """The accelerators of this machine; `sample` reads them all."""

    def __init__(self) -> None:
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError:
            self._handles: list[Any] = []
            return
        self._handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]

    def sample(self, pids: Collection[int]) -> tuple[GpuSample, ...]:
        """One sample an accelerator; `pids` is the subject's process tree."""
        return tuple(_sample(handle, pids) for handle in self._handles)


def _sample(handle: Any, pids: Collection[int]) -> GpuSample:
    memory = _told(lambda: pynvml.nvmlDeviceGetMemoryInfo(handle))
    utilization = _told(lambda: pynvml.nvmlDeviceGetUtilizationRates(handle))
    uuid = pynvml.nvmlDeviceGetUUID(handle)
    return GpuSample(
        uuid=uuid if isinstance(uuid, str) else uuid.decode(),
        power_milliwatts=_told(lambda: int(pynvml.nvmlDeviceGetPowerUsage(handle))),
        memory_used_bytes=None if memory is None else int(memory.used),
        process_memory_bytes=_told(lambda: _held_by(handle, pids)),
        utilization_percent=None if utilization is None else int(utilization.gpu),
        sm_clock_mhz=_told(lambda: int(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM))),
        throttle_reasons=_told(lambda: int(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))),
    )


def _held_by(handle: Any, pids: Collection[int]) -> int | None:
    """Bytes that the tree holds, or None where the driver hides the figure or (in a container) knows other ids."""
    running = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    held = [process.usedGpuMemory for process in running if process.pid in pids]
    known = [int(value) for value in held if value is not None]
    return sum(known) if known and len(known) == len(held) else None


def _told(ask: Callable[[], _T]) -> _T | None:
    try:
        return ask()
    except pynvml.NVMLError:
        return None
