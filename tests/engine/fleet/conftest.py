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
from tests.engine.fleet.fakes import Seen, Workshop, fake_plan
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

    def replicas(self) -> list[dict[str, Any]]:
        with Wire(self.address) as wire:
            found: list[dict[str, Any]] = wire.ask(request_bytes("GET", "/v1/fleet")).document()["replicas"]
        return found

    def seen(self, request_id: UUID) -> Seen:
        """What the engine that speaks this request has noted of it."""
        found = self.workshop.seen(request_id)
        assert found is not None
        return found

    def metric(self, name: str) -> float:
        """One sample of /metrics, by its full name with labels."""
        with Wire(self.address) as wire:
            text = wire.ask(request_bytes("GET", "/metrics")).whole().decode()
        return next((float(line.split()[-1]) for line in text.splitlines() if line.startswith(name + " ")), -1.0)


StartFleet = Callable[..., Fleet]


@dataclass
class Nodes:
    """A Ray cluster whose nodes are processes of this machine; a test may add nodes and take them away."""

    cluster: Any
    extra: list[Any] = field(default_factory=list)

    def add(self, *, environment: dict[str, str] | None = None, **resources: float) -> Any:
        node = self.cluster.add_node(**_node_options(1, resources), env_vars=environment or {})
        self.extra.append(node)
        return node

    def lose(self, node: Any) -> None:
        """The node and all of its processes die at once."""
        self.extra.remove(node)
        self.cluster.remove_node(node, allow_graceful=False)


@pytest.fixture(scope="session")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Two nodes, as small as they get; the head keeps its state on disk, so that it can be restarted."""
    ray = pytest.importorskip("ray", reason="the extra `fleet` is not installed")
    from ray.cluster_utils import Cluster

    patch = pytest.MonkeyPatch()
    patch.setenv("PYTHONPATH", str(ROOT))
    patch.setenv("OMP_NUM_THREADS", "1")
    patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    patch.setenv("RAY_gcs_storage", "rocksdb")
    patch.setenv("RAY_gcs_storage_path", str(tmp_path_factory.mktemp("gcs")))
    patch.setenv("RAY_raylet_start_wait_time_s", "120")
    cluster = Cluster(initialize_head=True, head_node_args=_node_options(2, {"head": 1}))
    cluster.add_node(**_node_options(2, {"second": 1}))
    ray.init(address=cluster.address, logging_level=logging.WARNING, log_to_driver=False)
    yield Nodes(cluster=cluster)
    from ray import serve

    serve.shutdown()
    ray.shutdown()
    cluster.shutdown()
    patch.undo()


def _node_options(cpus: int, resources: dict[str, float]) -> dict[str, Any]:
    return {
        "num_cpus": cpus,
        "object_store_memory": 100_000_000,
        "include_dashboard": False,
        "resources": resources,
    }


@pytest.fixture
def start_fleet(nodes: Nodes, tmp_path: Path) -> Iterator[StartFleet]:
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
    for node in list(nodes.extra):
        nodes.lose(node)
