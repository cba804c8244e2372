"""One Ray cluster for the session, in processes of this machine; a fleet of fake engines for each test."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from engine.fleet.plan import Plan
from engine.server.settings import ServerSettings
from tests.engine.fleet.fakes import Workshop, fake_plan
from tests.engine.server.client import Wire, request_bytes, speech_bytes
from tests.engine.server.conftest import ROOT

START_SECONDS = 60.0


def eventually(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait until the condition holds."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "the condition did not come true in time"
        time.sleep(0.02)


@dataclass
class Fleet:
    """A front door in an actor, and the engines behind it."""

    door: Any
    address: tuple[str, int]
    workshop: Workshop
    wires: list[Wire] = field(default_factory=list)

    def wire(self, **options: Any) -> Wire:
        self.wires.append(Wire(self.address, **options))
        return self.wires[-1]

    def ask(self, data: bytes) -> Wire:
        return self.wire().ask(data)

    def get(self, path: str) -> Wire:
        return self.ask(request_bytes("GET", path))

    def ready(self) -> bool:
        with Wire(self.address) as wire:
            return wire.ask(request_bytes("GET", "/health/ready")).status == 200

    def begin(self, text: str, **options: Any) -> tuple[Wire, UUID]:
        """A request on its way, not yet answered."""
        request_id = uuid4()
        return self.wire(**options).send(speech_bytes(text, {"X-Request-Id": str(request_id)}, seed=7)), request_id

    def metric(self, name: str) -> float:
        """One sample of /metrics, by its full name with labels."""
        with Wire(self.address) as wire:
            text = wire.ask(request_bytes("GET", "/metrics")).whole().decode()
        return next((float(line.split()[-1]) for line in text.splitlines() if line.startswith(name + " ")), -1.0)


StartFleet = Callable[..., Fleet]


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[None]:
    """Ray on this machine, as small as it gets."""
    ray = pytest.importorskip("ray", reason="the extra `fleet` is not installed")
    patch = pytest.MonkeyPatch()
    patch.setenv("PYTHONPATH", str(ROOT))
    patch.setenv("OMP_NUM_THREADS", "1")
    patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(
        num_cpus=4,
        object_store_memory=100_000_000,
        include_dashboard=False,
        logging_level=logging.WARNING,
        log_to_driver=False,
    )
    yield
    from ray import serve

    serve.shutdown()
    ray.shutdown()
    patch.undo()


@pytest.fixture
def start_fleet(ray_cluster: None, tmp_path: Path) -> Iterator[StartFleet]:
    """A function that opens a door before fake engines: keyword `settings` is the server's, the rest the plan's."""
    import ray

    from engine.fleet import cli, cluster

    started: list[Fleet] = []

    def start(
        *, wait: bool = True, plan: Plan | None = None, settings: dict[str, Any] | None = None, **more: Any
    ) -> Fleet:
        server = ServerSettings(port=0, log_level="error", **(settings or {}))
        door, _, address = cli.open_door(server, plan or fake_plan(tmp_path, **more), None)
        started.append(Fleet(door=door, address=address, workshop=Workshop(place=tmp_path)))
        if wait:
            eventually(started[-1].ready, START_SECONDS)
        return started[-1]

    yield start
    for fleet in started:
        for wire in fleet.wires:
            wire.socket.close()
        ray.kill(fleet.door)
    cluster.take_down()
