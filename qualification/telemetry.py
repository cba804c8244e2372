"""Telemetry of a run: the sampling process is started before the subject and stopped before it.

The harness does nothing while samples are taken: `qualification.sampler` has its own process, priority and file, so
that a busy client loop cannot delay it. What was sampled is handed over by that file, line by line; `stop` compares
its lines with what the sampler says that it wrote. A sampler that died, or a file that does not fit, is written down
as a fault, for the gate to judge; the run goes on.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from qualification.bench.clock import Clock
from qualification.errors import SubjectError
from qualification.schema import urn

IDLE_SECONDS: Final = 3.0
IDLE_INTERVAL_MS: Final = 80
SLOW_INTERVAL_MS: Final = 1_000
_ANSWER_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 10.0


class Sampler:
    """Runs the sampling process while inside: `with Sampler(...)`. The first sample is on disk on entry.

    Until `watch` it samples the idle machine.

    Raises:
        SubjectError: on entry, where the process does not start; from `watch`, where it finds no such subject.
    """

    def __init__(self, *, clock: Clock, path: Path, interval_ms: int = IDLE_INTERVAL_MS) -> None:
        self._path = path
        self._interval_ms = interval_ms
        self._command = [
            sys.executable, "-m", "qualification.sampler", "--zero-ns", str(clock.zero_ns),
            "--interval-ms", str(interval_ms), "--slow-interval-ms", str(SLOW_INTERVAL_MS), "--out", str(path),
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        self._told: dict[str, Any] = {}
        self._ended: dict[str, Any] = {}
        self._stopped = False

    def __enter__(self) -> Sampler:
        # The path that found this package finds it again, whatever the working directory.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self._process = subprocess.Popen(
            self._command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        self._told = self._answer()
        if "sensors" not in self._told:
            self.stop()
            raise SubjectError("the telemetry process ended before its first sample; what it said stands above")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def watch(self, pid: int, interval_ms: int) -> None:
        """Sample this process and its descendants from now on; its first sample is on disk on return.

        A sampler that has died by now is a fault to be written down, and no reason to stop.
        """
        self._interval_ms = interval_ms
        self._order({"pid": pid, "interval_ms": interval_ms})
        answer = self._answer()
        if "ended" in answer:
            self._ended = answer
            raise SubjectError("the telemetry process found no engine process to sample")

    def stop(self) -> None:
        """End the sampling; a second call does nothing."""
        process = self._process
        if process is None or self._stopped:
            return
        self._stopped = True
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            self._ended = self._ended or self._answer(_STOP_SECONDS)
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def document(self, run_id: str, number: int) -> dict[str, Any]:
        """The record of session `number`, once stopped. A line that was cut off by a crash is taken off the file."""
        lost = _cut_tail(self._path)
        lines = self._path.read_bytes().splitlines()
        return {
            "schema": urn("sampler"),
            "run_id": run_id,
            "number": number,
            "interval_ms": self._interval_ms,
            "slow_interval_ms": SLOW_INTERVAL_MS,
            "priority": self._told["priority"],
            "sensors": self._told["sensors"],
            "samples": len(lines),
            "first_ns": json.loads(lines[0])["at_ns"],
            "last_ns": json.loads(lines[-1])["at_ns"],
            "ended": self._ended.get("ended", "crashed"),
            "fault": self._fault(len(lines), lost),
        }

    def _fault(self, lines: int, lost: int) -> str | None:
        if "ended" not in self._ended:
            status = self._process.returncode if self._process else None
            tail = f", and {lost} bytes of a broken line were dropped" if lost else ""
            return f"The telemetry process ended with status {status} after {lines} samples{tail}."
        if self._ended["samples"] != lines or lost:
            return f"The telemetry process wrote {self._ended['samples']} samples and {lines} are in the file."
        return None

    def _order(self, order: dict[str, int]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
        except BrokenPipeError:
            return  # it has died; the missing answer says so

    def _answer(self, seconds: float = _ANSWER_SECONDS) -> dict[str, Any]:
        """The next line that it says; empty where it says nothing in time or has ended."""
        assert self._process is not None
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            return {}
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line.endswith(b"\n") else {}
        return answer


def _cut_tail(path: Path) -> int:
    """Take what follows the last line end off a file; returns how many bytes that was."""
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        with path.open("rb+") as file:
            file.truncate(whole)
    return len(data) - whole
