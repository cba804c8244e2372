"""What the NVIDIA driver says of each accelerator, for telemetry: power, energy, memory, load, clocks, heat, throttling.

Through the driver's own library (PyPI `nvidia-ml-py`), because starting `nvidia-smi` ten times a second would itself
load the machine. Without a driver there are no accelerators to list; a figure that the driver refuses is None, never
zero. All accelerators that the driver lists are sampled: it takes no notice of `CUDA_VISIBLE_DEVICES`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

import pynvml

from qualification.bench.raw import GpuSample

_T = TypeVar("_T")


class Gpus:
    """The accelerators of this machine; `sample` reads them all. `absent` says why there are none, else None."""

    def __init__(self, library: Any = pynvml) -> None:
        self._nvml = library
        self._devices: list[_Device] = []
        self.absent: str | None = None
        try:
            library.nvmlInit()
            handles = [library.nvmlDeviceGetHandleByIndex(index) for index in range(library.nvmlDeviceGetCount())]
            self._devices = [_Device(library, handle) for handle in handles]
        except library.NVMLError as error:  # no library, no driver, or a driver that refuses
            self.absent = f"{type(error).__name__}: {error}"

    @property
    def uuids(self) -> tuple[str, ...]:
        """The driver's names of the accelerators."""
        return tuple(device.uuid for device in self._devices)

    def sample(self, pids: Collection[int]) -> tuple[GpuSample, ...]:
        """One sample an accelerator; `pids` is the subject's process tree."""
        return tuple(device.sample(pids) for device in self._devices)


class _Device:
    """One accelerator."""

    def __init__(self, library: Any, handle: Any) -> None:
        self._nvml = library
        self._handle = handle
        uuid = library.nvmlDeviceGetUUID(handle)
        self.uuid = uuid if isinstance(uuid, str) else uuid.decode()

    def sample(self, pids: Collection[int]) -> GpuSample:
        nvml, handle = self._nvml, self._handle
        running = self._told(lambda: nvml.nvmlDeviceGetComputeRunningProcesses(handle))
        own = None if running is None else [process for process in running if process.pid in pids]
        return GpuSample(
            uuid=self.uuid,
            power_milliwatts=self._number(lambda: nvml.nvmlDeviceGetPowerUsage(handle)),
            energy_millijoules=self._number(lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle)),
            memory_used_bytes=self._number(lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used),
            process_memory_bytes=_held_by(own),
            processes=None if running is None else len(running),
            subject_processes=None if own is None or (running and not own) else len(own),
            utilization_percent=self._number(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu),
            sm_clock_mhz=self._number(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
            memory_clock_mhz=self._number(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),
            temperature_celsius=self._number(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
            throttle_reasons=self._number(lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)),
        )

    def _number(self, ask: Callable[[], Any]) -> int | None:
        told = self._told(ask)
        return None if told is None else int(told)

    def _told(self, ask: Callable[[], _T]) -> _T | None:
        try:
            return ask()
        except self._nvml.NVMLError:
            return None


def _held_by(own: list[Any] | None) -> int | None:
    """Bytes that the tree holds, or None where the driver hides the figure or (in a container) knows other ids."""
    known = [int(process.usedGpuMemory) for process in own or () if process.usedGpuMemory is not None]
    return sum(known) if known and own is not None and len(known) == len(own) else None
