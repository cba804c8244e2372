"""The telemetry process: `python -m qualification.sampler`, started by `qualification.telemetry`, not by people.

It speaks over its pipes. Out, one JSON line each: what it can sense, as soon as the first sample is on disk; an answer
to each order; at the end how many samples it wrote and why it ended. In: `{"pid", "interval_ms"}` names the subject;
end of file stops it, so it cannot outlive the harness. A sample is one line, written with one call, on the run's clock
(the operating system's monotonic clock is the same for all processes). A subject that has gone ends the samples; a gap
is left for the gate to see, not filled.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import select
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import psutil

from qualification import strictjson
from qualification.bench.clock import Clock
from qualification.bench.raw import TelemetrySample
from qualification.gpu import Gpus
from qualification.sampler.machine import HarnessCpu, MachineCpu
from qualification.sampler.power import PackageEnergy
from qualification.sampler.tree import SlowReader, Tree

_PRIORITY = -10  # a sampler that queues behind the load that it watches leaves gaps


class Sensors:
    """Everything that is read for one sample. Before `watch` there is no subject: the idle machine is sampled."""

    def __init__(self, clock: Clock, slow_seconds: float) -> None:
        self._clock = clock
        self._slow_seconds = slow_seconds
        self._gpus, self._energy = Gpus(), PackageEnergy()
        self._machine, self._harness = MachineCpu(), HarnessCpu()
        self._tree: Tree | None = None
        self._slow: SlowReader | None = None

    def told(self) -> dict[str, Any]:
        """What is there to be sensed, and why not."""
        return {
            "package_energy": {"zones": list(self._energy.zones), "absent": self._energy.absent},
            "accelerators": {"uuids": list(self._gpus.uuids), "absent": self._gpus.absent},
            "machine_cpu": self._machine.read() is not None,
        }

    def watch(self, pid: int) -> None:
        """Sample this process and its descendants from now on. Raises `psutil.NoSuchProcess`."""
        self._tree = Tree(pid)
        self._slow = SlowReader(self._tree, self._slow_seconds)

    def sample(self) -> TelemetrySample | None:
        """One sample; None when the subject has gone."""
        usage = self._tree.read() if self._tree is not None else None
        if self._tree is not None and usage is None:
            return None
        pids = usage.pids if usage else frozenset()
        return TelemetrySample(
            at_ns=self._clock.now_ns(),
            processes=len(pids),
            rss_bytes=usage.rss_bytes if usage else None,
            pss_bytes=self._slow.take() if self._slow else None,
            cpu_ns=usage.cpu_ns if usage else None,
            machine_cpu_ns=self._machine.read(),
            harness_cpu_ns=self._harness.read(),
            package_energy_microjoules=self._energy.read(),
            gpus=self._gpus.sample(pids),
        )

    def close(self) -> None:
        """Stop the slow reader."""
        if self._slow is not None:
            self._slow.close()


class Loop:
    """Samples at an interval until it is told to stop or the subject has gone."""

    def __init__(self, sensors: Sensors, out: BinaryIO, interval_seconds: float, priority: int) -> None:
        self._sensors = sensors
        self._out = out
        self._interval = interval_seconds
        self._priority = priority
        self._written = 0

    def run(self) -> None:
        """Sample to the end, then say what came of it."""
        ended, greeted, due = None, False, 0.0
        while ended is None:
            if not self._write():
                ended = "subject_gone"
                break
            if not greeted:
                _say({"priority": self._priority, "sensors": self._sensors.told()})
                greeted = True
            due = max(due + self._interval, _now())
            ended = self._wait(due)
        if ended == "stopped":
            self._write()  # so that the last phase, too, lies between samples
        _say({"samples": self._written, "ended": ended})

    def _write(self) -> bool:
        sample = self._sensors.sample()
        if sample is None:
            return False
        self._out.write(strictjson.dumps_line(sample.to_json()))  # unbuffered: one call, in the file before the next
        self._written += 1
        return True

    def _wait(self, due: float) -> str | None:
        """Until `due`, obeying orders; the reason to end, or None."""
        while (left := due - _now()) > 0:
            if select.select([sys.stdin], [], [], left)[0]:
                told = os.read(sys.stdin.fileno(), 4096)
                if not told:
                    return "stopped"
                return self._obey(json.loads(told))
        return None

    def _obey(self, order: dict[str, int]) -> str | None:
        try:
            self._sensors.watch(order["pid"])
        except psutil.NoSuchProcess:
            return "no_subject"
        self._interval = order["interval_ms"] / 1000
        if not self._write():
            return "no_subject"
        _say({"watching": order["pid"]})
        return None


def main() -> None:
    """Entry of the process."""
    parser = argparse.ArgumentParser(prog="python -m qualification.sampler", allow_abbrev=False, description=__doc__)
    parser.add_argument("--zero-ns", type=int, required=True)
    parser.add_argument("--interval-ms", type=int, required=True)
    parser.add_argument("--slow-interval-ms", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    gc.freeze()
    gc.disable()  # nothing here makes cycles, and a collection would be a pause
    with suppress(OSError):  # only root may; others sample as well as the scheduler lets them, and gaps stay visible
        os.setpriority(os.PRIO_PROCESS, 0, _PRIORITY)
    sensors = Sensors(Clock(zero_ns=options.zero_ns), options.slow_interval_ms / 1000)
    with options.out.open("xb", buffering=0) as out:
        priority = os.getpriority(os.PRIO_PROCESS, 0)
        Loop(sensors, out, options.interval_ms / 1000, priority).run()
    sensors.close()


def _now() -> float:
    return Clock(zero_ns=0).now_ns() / 1e9


def _say(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
