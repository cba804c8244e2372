"""The HTTP server as a process: listening socket, uvicorn, the line that announces the port, the exit status."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import uvicorn

from engine.contract import SpeechEngine
from engine.errors import UsageError
from engine.server.app import build_app
from engine.server.connection import SEND_BUFFER_BYTES, Connection, ConnectionLimits
from engine.server.lifecycle import Lifecycle
from engine.server.service import Service, build
from engine.server.settings import ServerSettings

BACKLOG = 1_024
CLOSE_SECONDS = 2
FLUSH_SECONDS = 5.0


def serve(settings: ServerSettings, make_engine: Callable[[], SpeechEngine]) -> int:
    """Serve until told to stop; returns the exit status, or ends the process where threads of the engine still run.

    Raises:
        UsageError: the address cannot be listened on.
    """
    listener = listen(settings.host, settings.port)
    with listener:
        exit_code = asyncio.run(_run(build(settings, make_engine), listener))
    if any(thread.daemon or thread.name.startswith(("submit", "cancel")) for thread in _others()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)  # a thread inside the engine would hold up, or crash, the interpreter's own end
    return exit_code


def listen(host: str, port: int) -> socket.socket:
    """A bound TCP socket whose connections get a small send buffer: backlog at a slow client stays about a second.

    Raises:
        UsageError: the address cannot be resolved or is taken.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        listener.bind(address)
    except OSError as error:
        raise UsageError(f"cannot listen on {host} port {port}: {error}; choose another --host or --port") from error
    return listener


class Server(uvicorn.Server):
    """uvicorn without its signal handling: the lifecycle decides when to stop."""

    def __init__(self, config: uvicorn.Config, on_listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_listening = on_listening

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_listening()

    async def on_tick(self, counter: int) -> bool:
        now = asyncio.get_running_loop().time()
        for connection in list(self.server_state.connections):
            cast(Connection, connection).sweep(now)
        return await super().on_tick(counter)

    def stop(self) -> None:
        """End `serve` soon."""
        self.should_exit = True


def make_server(service: Service, on_listening: Callable[[], None]) -> Server:
    """The HTTP server of a service; `await serve(sockets=[listener])` runs it."""
    return Server(_config(service, service.settings), on_listening)


async def _run(service: Service, listener: socket.socket) -> int:
    server = make_server(service, lambda: _announce(listener, lifecycle))
    lifecycle = Lifecycle(service, server.stop)
    await server.serve(sockets=[listener])
    return lifecycle.exit_code


def _announce(listener: socket.socket, lifecycle: Lifecycle) -> None:
    host, port = listener.getsockname()[:2]
    lifecycle.take_signals()
    print(json.dumps({"event": "listening", "host": host, "port": port}), flush=True)
    lifecycle.begin()


def _config(service: Service, settings: ServerSettings) -> uvicorn.Config:
    limits = ConnectionLimits(
        max_connections=settings.max_connections,
        request_read=settings.request_read_seconds,
        keep_alive=settings.keep_alive_seconds,
        flush=FLUSH_SECONDS,
    )
    return uvicorn.Config(
        build_app(service),
        http=cast(Any, functools.partial(Connection, limits=limits)),
        ws="none",
        loop="asyncio",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=int(settings.keep_alive_seconds) + 1,  # the connection's own sweep comes first
        timeout_graceful_shutdown=CLOSE_SECONDS,
        h11_max_incomplete_event_size=settings.max_header_bytes,
    )


def _others() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
