"""The environment is read from where the kernel and the driver say it, and says nothing private."""

from __future__ import annotations

import getpass
import platform
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from qualification.accelerators import capture_accelerators
from qualification.environment import PACKAGES, capture_environment
from qualification.source_state import SourceState

RUN_ID = "20260101T000000Z-test"
SOURCE = SourceState(commit="a" * 40, dirty=False)


class NvmlError(Exception):
    """The fake driver's refusal."""


def _refuse(*_: Any) -> Any:
    raise NvmlError("not supported")


def _driver(**changes: Any) -> SimpleNamespace:
    """A fake NVML with one device, on which processes 7 and 8 compute."""
    processes = [SimpleNamespace(pid=7, usedGpuMemory=100), SimpleNamespace(pid=8, usedGpuMemory=None)]
    fake = SimpleNamespace(
        NVMLError=NvmlError,
        NVML_CLOCK_SM=1,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlSystemGetDriverVersion=lambda: b"575.1",
        nvmlSystemGetCudaDriverVersion=lambda: 12090,
        nvmlDeviceGetCount=lambda: 1,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetUUID=lambda handle: "GPU-0",
        nvmlDeviceGetName=lambda handle: b"Accelerator",
        nvmlDeviceGetMemoryInfo=lambda handle: SimpleNamespace(total=1000, used=100),
        nvmlDeviceGetEnforcedPowerLimit=lambda handle: 700_000,
        nvmlDeviceGetMaxClockInfo=lambda handle, clock: 1980,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda handle: 0,
        nvmlDeviceGetComputeRunningProcesses=lambda handle: processes,
    )
    vars(fake).update(changes)
    return fake


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        "proc/cpuinfo": "processor : 0\nmodel name\t: Example CPU @ 2 GHz\n",
        "proc/meminfo": "MemTotal:  2048 kB\nMemAvailable: 1024 kB\nHugePages_Total: 0\n",
        "proc/loadavg": "0.50 1.25 2.00 1/100 4242\n",
        "proc/1/cgroup": "0::/system.slice/docker-abc.scope\n",
        "proc/self/status": "Name:\tpython\nNoNewPrivs:\t1\nSeccomp:\t2\n",
        "sys/fs/cgroup/cpu.max": "150000 100000\n",
        "sys/fs/cgroup/memory.max": "1048576\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def _capture(root: Path, **options: Any) -> dict[str, Any]:
    return capture_environment(RUN_ID, source=SOURCE, root=root, **{"nvml": _driver(), **options})


def test_reads_the_kernel(root: Path) -> None:
    machine = _capture(root)["machine"]
    assert machine["cpu_model"] == "Example CPU @ 2 GHz"
    assert (machine["memory_bytes"], machine["memory_available_bytes"]) == (2 * 2**20, 2**20)
    assert (machine["cpu_quota"], machine["memory_limit_bytes"]) == (1.5, 2**20)
    assert machine["load_average"] == [0.5, 1.25, 2.0]


def test_reads_container_marks(root: Path) -> None:
    assert _capture(root)["container"] == {"hints": ["docker"], "no_new_privileges": True, "seccomp_mode": 2}


@pytest.mark.parametrize(
    ("cpu", "memory"), [("max 100000", "max"), ("", ""), ("0 0", "9223372036854771712"), ("many 1", "much")]
)
def test_no_limit_is_null(root: Path, cpu: str, memory: str) -> None:
    (root / "sys/fs/cgroup/cpu.max").write_text(cpu)
    (root / "sys/fs/cgroup/memory.max").write_text(memory)
    machine = _capture(root)["machine"]
    assert (machine["cpu_quota"], machine["memory_limit_bytes"]) == (None, None)


def test_nothing_readable_is_null(tmp_path: Path) -> None:
    document = _capture(tmp_path / "empty")
    readable = {"architecture", "system", "kernel", "cpus", "cpus_usable"}
    assert {name for name, value in document["machine"].items() if value is not None} <= readable
    assert document["container"] == {"hints": [], "no_new_privileges": None, "seccomp_mode": None}


def test_packages_of_another_path_are_null(root: Path, tmp_path: Path) -> None:
    packages = _capture(root, subject_path=[str(tmp_path)])["packages"]
    assert packages == [{"name": name, "version": None} for name in PACKAGES]


def test_the_real_machine_has_the_schema_and_tells_nothing_private() -> None:
    texts = list(_texts(capture_environment(RUN_ID, source=SOURCE)))
    assert len(texts) > 20
    assert not {platform.node(), getpass.getuser()} & set(texts)
    assert [text for text in texts if "/" in text or "\\" in text] == []  # no path of any kind


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for child in value.values() if isinstance(value, dict) else value:
            yield from _texts(child)


def test_devices_and_competitors() -> None:
    found = capture_accelerators({8}, _driver())
    assert (found["absent"], found["driver"], found["cuda"]) == (None, "575.1", "12.9")
    (device,) = found["devices"]
    assert (device["name"], device["memory_bytes"], device["power_limit_milliwatts"]) == ("Accelerator", 1000, 700_000)
    assert (device["competing_processes"], device["competing_memory_bytes"]) == (1, 100)


def test_a_silent_driver_gives_null() -> None:
    fake = _driver(nvmlDeviceGetEnforcedPowerLimit=_refuse, nvmlDeviceGetComputeRunningProcesses=_refuse)
    (device,) = capture_accelerators((), fake)["devices"]
    assert (device["power_limit_milliwatts"], device["competing_processes"]) == (None, None)


def test_absence_says_why() -> None:
    found = capture_accelerators((), _driver(nvmlInit=_refuse))
    assert (found["devices"], found["absent"]) == ([], "NvmlError: not supported")
