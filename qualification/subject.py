"""The engine under test: a process or container that the harness starts and stops, or an endpoint already there.

The harness knows a subject by its wire alone: an address, what it says of itself, and (for a process) a process id,
an exit status and the last lines that it wrote. `engine` is never imported: where its embedded model lies is asked of
the import system, which finds a package without running it.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from qualification.bench.clock import Clock
from qualification.bench.target import Target, parse_target
from qualification.capabilities import Capabilities, ask_capabilities, readiness
from qualification.engine_process import EngineProcess
from qualification.errors import SubjectError, UsageError

READY_SECONDS = 120.0
_POLL_SECONDS = 0.3


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A subject that answers. `pid` is None for an endpoint, and for an adapter of one: nothing can be sampled there. A container is no child of
    ours: `watch` says whether it runs, `log` what it wrote last."""

    kind: str
    target: Target
    capabilities: Capabilities
    command: tuple[str, ...]
    pid: int | None
    process: EngineProcess | None
    watch: Callable[[], bool] | None = None
    log: Callable[[], tuple[str, ...]] | None = None

    def alive(self) -> bool:
        """Whether the process or container still runs; an endpoint is presumed to."""
        if self.watch is not None:
            return self.watch()
        return self.process is None or self.process.running

    def log_tail(self) -> tuple[str, ...]:
        """The last lines that it wrote; empty for an endpoint."""
        if self.log is not None:
            return self.log()
        return () if self.process is None else self.process.log_tail()

    def obituary(self) -> str:
        """What is known of one that died, its last lines included."""
        if self.process is not None:
            return self.process.obituary("died")
        lines = "\n".join(f"    {line}" for line in self.log_tail()[-12:]) or "    (it wrote nothing)"
        return f"the {self.kind} died; its last lines:\n{lines}"


def engine_command(*, model: Path, precision: str | None, device: str | None) -> tuple[str, ...]:
    """The command line that serves `model` on a free port of the loopback interface."""
    command = [sys.executable, "-m", "engine", "serve", "--model", str(model), "--host", "127.0.0.1", "--port", "0"]
    command += ["--precision", precision] if precision else []
    command += ["--device", device] if device else []
    return tuple(command)


def embedded_model() -> Path:
    """Directory of the model that ships with the engine.

    Raises:
        UsageError: the engine is not installed beside the harness.
    """
    spec = importlib.util.find_spec("engine")
    if spec is None or not spec.submodule_search_locations:
        raise UsageError("the package `engine` is not installed here; give --model DIR with --endpoint, or install it")
    return Path(next(iter(spec.submodule_search_locations))) / "reference_model"


def shape_model() -> Path:
    """Directory of the synthetic checkpoint of the published shapes, written by the engine if it is not there yet.

    It lies in `ASSAY_CACHE`, or else in the user's cache directory; whether its bytes are the pinned ones is decided
    where every model is hashed.

    Raises:
        SubjectError: the engine could not write it.
    """
    cache = os.environ.get("ASSAY_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "assay"
    place = Path(cache) / "shape-seed-0"
    if place.exists():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=place.parent) as beside:  # nobody ever sees half a checkpoint under its name
        fresh = Path(beside) / place.name
        made = subprocess.run(
            [sys.executable, "-m", "engine", "make-shape", str(fresh)], capture_output=True, text=True, check=False
        )
        if made.returncode:
            raise SubjectError(f"the synthetic checkpoint could not be written to {place}: {made.stderr.strip()}")
        fresh.rename(place)
    return place


def process_start(subject: Subject) -> float | None:
    """When the operating system started the subject's own process, seconds since 1970; None for one that is not ours."""
    return psutil.Process(subject.process.pid).create_time() if subject.process else None


@contextmanager
def started(command: Sequence[str], clock: Clock, *, ready_seconds: float = READY_SECONDS) -> Iterator[Subject]:
    """A subject process, ready on entry and stopped on exit.

    Raises:
        SubjectError: it did not start, listen or become ready in time.
    """
    deadline = time.monotonic() + ready_seconds
    process = EngineProcess(command)
    try:
        host, port = process.wait_listening(deadline)
        target = Target(host=host, port=port)
        _wait_ready(target, clock, deadline, process)
        capabilities = ask_capabilities(target, clock)
        yield Subject(
            kind="adapter" if capabilities.adapter else "process",
            target=target,
            capabilities=capabilities,
            command=process.command,
            pid=None if capabilities.adapter else process.pid,
            process=process,
        )
    finally:
        process.stop()


@contextmanager
def at_endpoint(url: str, clock: Clock) -> Iterator[Subject]:
    """A subject that is already there; it must be ready now.

    Raises:
        UsageError: the URL is none.
        SubjectError: nobody answers, or what answers is not ready.
    """
    target = parse_target(url)
    state = readiness(target, clock)
    if state != "ready":
        raise SubjectError(f"{target.url} is not ready: {state}; start the server, or correct --endpoint")
    yield Subject(
        kind="endpoint",
        target=target,
        capabilities=ask_capabilities(target, clock),
        command=(),
        pid=None,
        process=None,
    )


def _wait_ready(target: Target, clock: Clock, deadline: float, process: EngineProcess) -> None:
    while (state := readiness(target, clock)) != "ready":
        if not process.running:
            raise SubjectError(process.obituary("ended before it was ready"))
        if time.monotonic() > deadline:
            raise SubjectError(process.obituary(f"was not ready in time: {state}"))
        time.sleep(_POLL_SECONDS)
