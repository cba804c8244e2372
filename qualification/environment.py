"""The machine that a run happened on: processor, memory, load, kernel, versions, accelerators, container.

Only what bears on the figures. Nothing private: no host name, user, address or path is read, and texts that come from
the machine are cut to what the schema allows. What cannot be read is null, never a guess.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from qualification import schema
from qualification.accelerators import capture_accelerators
from qualification.licence_sources import normal_name
from qualification.source_state import SourceState

PACKAGES = (
    "tts-assay", "torch", "triton", "numpy", "safetensors", "tokenizers", "starlette", "uvicorn", "h11", "httpx",
    "jsonschema", "cryptography",
)  # fmt: skip
_ROOT = Path("/")


def capture_environment(
    run_id: str,
    *,
    source: SourceState,
    own_processes: Collection[int] = (),
    subject_path: Iterable[str] | None = None,
    root: Path = _ROOT,
    nvml: Any = None,
) -> dict[str, Any]:
    """The document `environment.json`, as things stand now; take it before the load begins.

    `subject_path` is the import path of the subject's interpreter (default: this one's), `own_processes` the subject's
    process ids, `root` where `/proc` and `/sys` are, `nvml` a module that speaks NVML.
    """
    document = {
        "schema": schema.urn("environment"),
        "run_id": run_id,
        "captured_utc": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "machine": _machine(root),
        "python": {"implementation": platform.python_implementation(), "version": platform.python_version()},
        "packages": _packages(sys.path if subject_path is None else subject_path),
        "accelerators": capture_accelerators(own_processes, nvml),
        "container": _container(root),
        "source": source.to_json(),
    }
    schema.validate(name="environment", document=document, source="environment.json")
    return document


def _machine(root: Path) -> dict[str, Any]:
    memory = _memory(root)
    return {
        "architecture": platform.machine(),
        "system": platform.system(),
        "kernel": platform.release(),
        "cpu_model": _first(root / "proc/cpuinfo", r"(?m)^model name\s*:\s*(.+)$"),
        "cpus": os.cpu_count() or 1,
        "cpus_usable": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "cpu_quota": _cpu_quota(root),
        "cpu_governor": _line(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "memory_bytes": memory.get("MemTotal"),
        "memory_available_bytes": memory.get("MemAvailable"),
        "memory_limit_bytes": _memory_limit(root),
        "load_average": _load(root),
    }


def _memory(root: Path) -> dict[str, int]:
    text = _text(root / "proc/meminfo") or ""
    return {name: int(kib) * 1024 for name, kib in re.findall(r"(?m)^(\w+):\s+(\d+) kB$", text)}


def _load(root: Path) -> list[float] | None:
    """Mean runnable processes over the last 1, 5 and 15 minutes."""
    words = (_line(root / "proc/loadavg") or "").split()
    return [float(word) for word in words[:3]] if len(words) >= 3 else None


def _cpu_quota(root: Path) -> float | None:
    """Processors that the control group allows, or None without a quota (version 2, then version 1)."""
    words = (_line(root / "sys/fs/cgroup/cpu.max") or "").split()
    if len(words) != 2:
        words = [_line(root / f"sys/fs/cgroup/cpu/cpu.cfs_{name}_us") or "" for name in ("quota", "period")]
    if not all(word.isdigit() for word in words) or int(words[1]) == 0:
        return None
    return int(words[0]) / int(words[1])


def _memory_limit(root: Path) -> int | None:
    """Bytes that the control group allows, or None without a limit (version 1 writes a huge number for none)."""
    for place in ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"):
        text = _line(root / place)
        if text and text.isdigit() and int(text) < 2**60:
            return int(text)
    return None


def _container(root: Path) -> dict[str, Any]:
    """Marks that container engines leave; none of them proves that there is no container."""
    marks = {".dockerenv": "docker", "run/.containerenv": "podman"}
    hints = [name for mark, name in marks.items() if (root / mark).exists()]
    groups = _text(root / "proc/1/cgroup") or ""
    hints += [name for name in ("kubepods", "docker", "containerd", "lxc") if name in groups and name not in hints]
    seccomp = _first(root / "proc/self/status", r"(?m)^Seccomp:\s*(\d)$")
    no_new = _first(root / "proc/self/status", r"(?m)^NoNewPrivs:\s*(\d)$")
    return {
        "hints": sorted(hints),
        "seccomp_mode": int(seccomp) if seccomp else None,
        "no_new_privileges": None if no_new is None else no_new == "1",
    }


def _packages(path: Iterable[str]) -> list[dict[str, str | None]]:
    """Version of each package of interest on the subject's path; null where it is not installed."""
    found: dict[str, str] = {}
    for item in distributions(path=list(path)):
        found.setdefault(normal_name(item.metadata["Name"] or ""), item.version)
    return [{"name": name, "version": found.get(name)} for name in PACKAGES]


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _line(path: Path) -> str | None:
    text = _text(path)
    return text.strip() or None if text else None


def _first(path: Path, pattern: str) -> str | None:
    match = re.search(pattern, _text(path) or "")
    return match[1].strip()[:200] if match else None
