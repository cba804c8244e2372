"""The subject's process tree: what it holds and what it has used.

The list of processes and the proportional memory (PSS) are read by a thread of their own at a slower pace: the kernel
walks every page of a process for its PSS (15 ms for 1.4 GB here), which would tear holes into the samples.
"""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass
from pathlib import Path

import psutil

_PROC = Path("/proc")


@dataclass(frozen=True, kw_only=True)
class Usage:
    """The tree at one moment: process ids, resident bytes (shared pages count in each process), CPU nanoseconds."""

    pids: frozenset[int]
    rss_bytes: int
    cpu_ns: int


class Tree:
    """A process and its descendants. Raises `psutil.NoSuchProcess` where the root is not there."""

    def __init__(self, pid: int, proc: Path = _PROC) -> None:
        self._root = psutil.Process(pid)
        self._proc = proc
        self._members: list[psutil.Process] = []
        self.refresh()

    def refresh(self) -> None:
        """Look for descendants anew; all processes of the machine are walked for it."""
        self._members = [self._root, *self._root.children(recursive=True)]

    def read(self) -> Usage | None:
        """What the tree uses now; None when the root has ended."""
        alive: set[int] = set()
        rss, cpu = 0, 0.0
        for process in self._members:
            try:
                with process.oneshot():
                    times = process.cpu_times()
                    rss += process.memory_info().rss
                    cpu += times.user + times.system
                    cpu += getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
                    alive.add(process.pid)
            except psutil.NoSuchProcess:
                if process is self._root:
                    return None
        if rss == 0:  # a zombie: the process has ended and only its entry is left
            return None
        return Usage(pids=frozenset(alive), rss_bytes=rss, cpu_ns=round(cpu * 1e9))

    def read_pss(self) -> int | None:
        """Resident bytes with each shared page divided by its users; None where the kernel does not tell."""
        total = 0
        for process in self._members:
            try:
                total += _pss(self._proc / str(process.pid) / "smaps_rollup")
            except (FileNotFoundError, ProcessLookupError):
                if process is self._root:
                    return None  # gone, or a kernel without the file
            except (OSError, ValueError):
                return None
        return total or None


def _pss(path: Path) -> int:
    for line in path.read_bytes().splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"{path}: has no line Pss")


class SlowReader:
    """Refreshes a tree and reads its PSS every `seconds`, in a thread that ends with the process."""

    def __init__(self, tree: Tree, seconds: float) -> None:
        self._tree = tree
        self._seconds = seconds
        self._found: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def take(self) -> int | None:
        """The PSS that was read since the last call, once; else None."""
        try:
            return self._found.get_nowait()
        except queue.Empty:
            return None

    def close(self) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            try:
                self._tree.refresh()
            except psutil.NoSuchProcess:
                return
            pss = self._tree.read_pss()
            if pss is not None:
                self._found.put(pss)
            if self._ended.wait(self._seconds):
                return
