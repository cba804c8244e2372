"""Servers for tests: in a thread, around a fake engine the test can reach, or as a real process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from engine.server.lifecycle import Lifecycle
from engine.server.process import listen, make_server
from engine.server.service import Service, build
from engine.server.settings import ServerSettings
from tests.engine.server.client import Wire, request_bytes
from tests.engine.server.fake_engine import FakeEngine

ROOT = Path(__file__).parents[3]


def eventually(condition: Callable[[], object], seconds: float = 5.0) -> float:
    """Wait until the condition holds; returns the seconds it took."""
    start = time.perf_counter()
    while not condition():
        assert time.perf_counter() - start < seconds, "the condition did not come true in time"
        time.sleep(0.001)
    return time.perf_counter() - start


@dataclass
class Running:
    """A server in a thread of this process."""

    engine: FakeEngine
    service: Service
    address: tuple[str, int]
    stop: Callable[[], None]
    wires: list[Wire] = field(default_factory=list)

    def wire(self, **options: Any) -> Wire:
        self.wires.append(Wire(self.address, **options))
        return self.wires[-1]

    def ask(self, data: bytes) -> Wire:
        return self.wire().ask(data)


StartServer = Callable[..., Running]


@pytest.fixture
def start_server() -> Iterator[StartServer]:
    """A function that starts a server around a fake engine: keyword `engine`, the rest are settings."""
    with servers() as start:
        yield start


@pytest.fixture(scope="module")
def shared_server() -> Iterator[Running]:
    """One server with default settings for the tests of a file that leave it as it was."""
    with servers() as start:
        yield start()


@contextmanager
def servers() -> Iterator[StartServer]:
    """Starts servers around fake engines and ends them."""
    running: list[Running] = []

    def start(engine: FakeEngine | None = None, *, wait: bool = True, **settings: Any) -> Running:
        found = _start(engine or FakeEngine(), ServerSettings(port=0, log_level="error", **settings))
        running.append(found)
        if wait:
            eventually(lambda: found.service.desk.ready)
        return found

    yield start
    for server in running:
        server.engine.unhang.set()
        for wire in server.wires:
            wire.socket.close()
        server.stop()


def _start(engine: FakeEngine, settings: ServerSettings) -> Running:
    service = build(settings, lambda: engine)
    listener = listen("127.0.0.1", 0)
    listening = threading.Event()
    hold: dict[str, Any] = {}

    async def main() -> None:
        def begin() -> None:
            hold["loop"] = asyncio.get_running_loop()
            hold["lifecycle"].begin()
            listening.set()

        server = make_server(service, begin)
        hold["lifecycle"] = Lifecycle(service, server.stop, arm_last_resort=lambda: None)
        await server.serve(sockets=[listener])

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    assert listening.wait(10)

    def stop() -> None:
        if thread.is_alive():
            lifecycle: Lifecycle = hold["lifecycle"]
            hold["loop"].call_soon_threadsafe(lifecycle.shut_down, 0)
            hold["loop"].call_soon_threadsafe(lifecycle.shut_down, 0)  # the second call ends the grace time
            thread.join(20)
            assert not thread.is_alive()

    return Running(engine=engine, service=service, address=listener.getsockname()[:2], stop=stop)


@dataclass
class Process:
    """A server in a process of its own."""

    process: subprocess.Popen[str]
    address: tuple[str, int]
    log: Path
    wires: list[Wire] = field(default_factory=list)

    def wire(self, **options: Any) -> Wire:
        self.wires.append(Wire(self.address, **options))
        return self.wires[-1]

    def ask(self, data: bytes) -> Wire:
        return self.wire().ask(data)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def close(self) -> None:
        """Let go of the process's pipe and of every connection."""
        for wire in self.wires:
            wire.socket.close()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def exit_code(self, seconds: float = 35.0) -> int:
        return self.process.wait(seconds)

    def ready(self) -> bool:
        with self.wire() as wire:
            return wire.ask(request_bytes("GET", "/health/ready")).status == 200

    def metric(self, name: str) -> float:
        """One sample of /metrics, by its full name with labels."""
        with self.wire() as wire:
            text = wire.ask(request_bytes("GET", "/metrics")).whole().decode()
        return next((float(line.split()[-1]) for line in text.splitlines() if line.startswith(name + " ")), 0.0)


StartProcess = Callable[..., Process]


@pytest.fixture
def start_process(tmp_path: Path) -> Iterator[StartProcess]:
    """A function that starts the fake server as a process with the given flags."""
    with processes(tmp_path) as start:
        yield start


@contextmanager
def processes(tmp_path: Path) -> Iterator[StartProcess]:
    """The same for a fixture of another scope; what was started is ended."""
    started: list[Process] = []

    def start(*flags: str, wait: bool = True) -> Process:
        found = launch(flags, tmp_path / f"server-{len(started)}.log")
        started.append(found)
        if wait:
            eventually(found.ready, 10)
        return found

    yield start
    for server in started:
        if server.process.poll() is None:
            server.process.kill()
        server.process.wait(10)
        server.close()


FAKE_SERVER = ("tests.engine.server.fake_server",)


def launch(flags: tuple[str, ...], log: Path, module: tuple[str, ...] = FAKE_SERVER) -> Process:
    """Start a server, the fake one unless another is named, and read the line that announces its port."""
    command = [sys.executable, "-m", *module, "--port", "0", *flags]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    with log.open("wb") as errors:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, log.read_text()
    announced = json.loads(line)
    assert announced["event"] == "listening"
    return Process(process=process, address=(announced["host"], announced["port"]), log=log)
