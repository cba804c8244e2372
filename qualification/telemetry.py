"""Samples the subject's process tree from a process of its own, so that neither the client nor the engine delays it.

`Sampler` starts `python -m qualification.telemetry`, which writes one JSON line a sample on the run's clock (the
operating system's monotonic clock is the same for all processes) and ends when its standard input closes: it cannot
outlive the harness. Memory is resident memory summed over the tree: pages that processes share count more than once,
never less than once. A tree that has gone ends the samples; a gap is left for the verifier to see, not filled.
"""

from __future__ import annotations

import argparse
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import psutil

from qualification import strictjson
from qualification.bench.clock import Clock
from qualification.bench.raw import TelemetrySample
from qualification.errors import SubjectError
from qualification.gpu import Gpus

_TREE_REFRESH_SAMPLES = 10
_STOP_SECONDS = 10.0
_PRIORITY = -10  # a sampler that queues behind the load that it watches leaves gaps
_POWERCAP = Path("/sys/class/powercap")


class Sampler:
    """Runs the sampling process while inside: `with Sampler(...)`. The first sample is on disk on entry."""

    def __init__(self, *, pid: int, clock: Clock, path: Path, interval_ms: int) -> None:
        self._command = [
            sys.executable, "-m", "qualification.telemetry", "--pid", str(pid), "--zero-ns", str(clock.zero_ns),
            "--interval-ms", str(interval_ms), "--out", str(path),
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Sampler:
        # The path that found this package finds it again, whatever the working directory.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"sampling\n":
            self.__exit__(None, None, None)
            raise SubjectError(
                "the telemetry process found no engine process to sample; it ended before the first sample"
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


class Tree:
    """A process and its descendants. The list is refreshed now and then: walking all processes each time is slow."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._members: list[psutil.Process] = []
        self._age = 0

    def read(self) -> tuple[frozenset[int], int, int]:
        """(process ids, resident bytes, CPU nanoseconds). Raises `psutil.NoSuchProcess` when the root has gone."""
        if self._age % _TREE_REFRESH_SAMPLES == 0:
            self._members = [self._root, *self._root.children(recursive=True)]
        self._age += 1
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
                    raise
        return frozenset(alive), rss, round(cpu * 1e9)


class PackageEnergy:
    """The processors' energy counters (RAPL), summed, with wrap-arounds taken out; None where they cannot be read."""

    def __init__(self, root: Path = _POWERCAP) -> None:
        self._zones = [zone for zone in sorted(root.glob("intel-rapl:[0-9]*")) if zone.name.count(":") == 1]
        self._last = [0] * len(self._zones)
        self._wrapped = [0] * len(self._zones)

    def read(self) -> int | None:
        """Microjoules since an arbitrary zero."""
        if not self._zones:
            return None
        try:
            return sum(self._read_zone(number) for number in range(len(self._zones)))
        except (OSError, ValueError):
            return None

    def _read_zone(self, number: int) -> int:
        zone = self._zones[number]
        now = int((zone / "energy_uj").read_text())
        if now < self._last[number]:
            self._wrapped[number] += int((zone / "max_energy_range_uj").read_text())
        self._last[number] = now
        return now + self._wrapped[number]


def samples(tree: Tree, clock: Clock) -> Iterator[TelemetrySample]:
    """A sample whenever asked, until the tree's root is gone."""
    gpus, energy = Gpus(), PackageEnergy()
    while True:
        try:
            pids, rss, cpu = tree.read()
        except psutil.NoSuchProcess:
            return
        if rss == 0:  # a zombie: the process has ended and only its entry is left
            return
        yield TelemetrySample(
            at_ns=clock.now_ns(),
            processes=len(pids),
            rss_bytes=rss,
            cpu_ns=cpu,
            package_energy_microjoules=energy.read(),
            gpus=gpus.sample(pids),
        )


def sample_until_closed(tree: Tree, clock: Clock, *, out: BinaryIO, interval_seconds: float) -> None:
    """Write a line every interval until standard input closes or the tree has gone."""
    due = clock.now_ns() / 1e9
    for number, sample in enumerate(samples(tree, clock)):
        out.write(strictjson.dumps_line(sample.to_json()))
        out.flush()
        if number == 0:
            sys.stdout.write("sampling\n")
            sys.stdout.flush()
        due = max(due + interval_seconds, clock.now_ns() / 1e9)
        if select.select([sys.stdin], [], [], max(0.0, due - clock.now_ns() / 1e9))[0]:
            return


def main() -> None:
    """Entry of the sampling process; started by `Sampler`, not by people."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    parser.add_argument("--pid", type=int, required=True)
    parser.add_argument("--zero-ns", type=int, required=True)
    parser.add_argument("--interval-ms", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    with suppress(OSError):  # only root may; others sample as well as the scheduler lets them, and gaps stay visible
        os.setpriority(os.PRIO_PROCESS, 0, _PRIORITY)
    try:
        tree = Tree(options.pid)
    except psutil.NoSuchProcess:
        return
    with options.out.open("xb") as out:
        sample_until_closed(tree, Clock(zero_ns=options.zero_ns), out=out, interval_seconds=options.interval_ms / 1000)


if __name__ == "__main__":
    main()
