"""The front door as a Ray actor: the server of one machine, unchanged, with a fleet for its engine.

An actor, because replicas call it with their audio. It listens with the server's own sockets, so that every bound of
the wire holds here as on one machine; Serve's proxy would buffer what a slow client does not take.
"""

from __future__ import annotations

import asyncio
import os
import socket
from uuid import UUID

import ray

from engine.fleet import report
from engine.fleet.cluster import ServeCluster
from engine.fleet.engine import FleetEngine
from engine.fleet.line import Word
from engine.fleet.plan import Plan
from engine.server import logs
from engine.server.lifecycle import Lifecycle
from engine.server.process import listen, make_server
from engine.server.service import build
from engine.server.settings import PREFIX, ServerSettings


class FrontDoor:
    """One door. `run` ends with the exit status, after `stop` or when the replicas cannot start."""

    def __init__(self, settings: ServerSettings, plan: Plan, token: str | None) -> None:
        logs.configure(settings.log_level)
        if token is not None:
            os.environ[f"{PREFIX}AUTH_TOKEN"] = token
        self._settings = settings
        self._plan = plan
        self._listener: socket.socket = listen(settings.host, settings.port)
        self._open = asyncio.Event()
        self._lifecycle: Lifecycle | None = None
        self._engine: FleetEngine | None = None

    async def address(self) -> tuple[str, int]:
        """Where the door listens; waits for `run` to open it."""
        await self._open.wait()
        host, port = self._listener.getsockname()[:2]
        return host, port

    async def run(self) -> int:
        """Serve until stopped; returns the exit status."""
        engine = self._engine = FleetEngine(ServeCluster(self._plan, ray.get_runtime_context().current_actor))
        service = build(self._settings, lambda: engine, report.routes(engine.roster))
        service.metrics.registry.register(report.FleetCollector(engine.roster))
        server = make_server(service, lambda: self._begin(lifecycle))
        lifecycle = self._lifecycle = Lifecycle(service, server.stop)
        with self._listener:
            await server.serve(sockets=[self._listener])
        return lifecycle.exit_code

    def _begin(self, lifecycle: Lifecycle) -> None:
        lifecycle.begin()
        self._open.set()

    async def deliver(self, request_id: UUID, word: Word) -> bool:
        """A replica's word about a request; the answer says whether it shall go on."""
        return self._engine is not None and await self._engine.hear(request_id, word)

    async def stop(self, exit_code: int) -> None:
        """Drain as on SIGTERM; called again: stop waiting for active streams."""
        if self._lifecycle is not None:
            self._lifecycle.shut_down(exit_code)
