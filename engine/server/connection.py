"""One TCP connection under bounds: what uvicorn's HTTP/1.1 protocol leaves open, closed here.

Adds a limit on connections, a deadline for each request to arrive whole (slow loris), a deadline for the last bytes to
leave, an unbuffered transport so that awaiting a send means the kernel has it, and problem documents for broken HTTP.
Not covered: pacing of a stream (`outlet`).
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from dataclasses import dataclass
from typing import Any, cast

import h11
from starlette.types import Message
from uvicorn.protocols.http.h11_impl import H11Protocol

from engine.server.problems import Problem

SCOPE_KEY = "assay.connection"
SEND_BUFFER_BYTES = 65_536  # of the kernel, for each connection: little more than one second of audio
DISCARD_LIMIT = 8 * 1024 * 1024  # bytes of an unwanted body that are read before the connection is cut


@dataclass(frozen=True, kw_only=True)
class ConnectionLimits:
    """Bounds of a connection. Times in seconds."""

    max_connections: int
    request_read: float
    keep_alive: float
    flush: float


class _Joining:
    """A transport that can keep one write back until the next, so that an answer's head leaves with its body."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._held = b""
        self._hold_next = False

    def hold_next(self) -> None:
        """Keep the next write back."""
        self._hold_next = True

    def write(self, data: bytes) -> None:
        if self._hold_next:
            self._hold_next, self._held = False, data
        elif data or self._held:
            self._transport.write(self._held + data)
            self._held = b""

    def close(self) -> None:
        self.write(b"")
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Connection(H11Protocol):
    """uvicorn's protocol with bounds. `sweep` must be called a few times a second."""

    def __init__(self, *, limits: ConnectionLimits, **uvicorn_arguments: Any) -> None:
        super().__init__(**uvicorn_arguments)
        self._limits = limits
        self._asgi_app = self.app
        self.app = self._with_connection
        self._awaiting_since: float | None = None  # the start of the wait for a whole request
        self._idle = True
        self._closing_since: float | None = None
        self._received = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._joining = _Joining(transport)
        super().connection_made(cast(asyncio.Transport, self._joining))
        transport.set_write_buffer_limits(high=0)
        self._awaiting_since = self.loop.time()
        if len(self.connections) > self._limits.max_connections:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unset_keepalive_if_required()  # uvicorn leaves its timer, and with it this object, after a reset

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._idle:
            self._idle, self._awaiting_since, self._received = False, self.loop.time(), 0
        self._received += len(data)
        if self._received > DISCARD_LIMIT:
            self.abort()
            return
        try:
            super().data_received(data)
        except h11.LocalProtocolError:  # rubbish after a request whose answer has begun
            self.abort()
            return
        self._note_progress()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._note_progress()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP with a problem document; cut the connection where an answer has already begun."""
        if self._answering():
            if self.cycle.response_started:
                self.abort()
                return
            self.cycle.disconnected = True  # the body broke off: the application has nobody left to answer
            self.cycle.message_event.set()
        hint = getattr(sys.exc_info()[1], "error_status_hint", 400)
        code = "headers_too_large" if hint == 431 else "malformed_request"
        self._refuse(Problem(code, "the request is not HTTP/1.1 within this server's limits; correct the client"))

    def abort(self) -> None:
        """Cut the connection now; what was not sent is dropped."""
        self.transport.abort()

    def hang_up(self) -> None:
        """Close after the bytes already handed over, without ending the message: the client sees a broken answer."""
        self.transport.close()

    def sweep(self, now: float) -> None:
        """Enforce the deadlines."""
        if self.transport.is_closing():
            self._closing_since = self._closing_since or now
            if now - self._closing_since > self._limits.flush:
                self.transport.abort()
        elif self._awaiting_since is not None and now - self._awaiting_since > self._allowance():
            self._time_out()

    def _allowance(self) -> float:
        if self._idle:
            return self._limits.keep_alive
        if self.conn.their_state is h11.SEND_BODY and self._answering():  # the application refuses first
            return self._limits.request_read + self._limits.flush
        return self._limits.request_read

    def _time_out(self) -> None:
        if self._idle or self._answering():
            self.transport.close()
        else:
            self._refuse(Problem("request_timeout", "the request did not arrive in time; send it again at once"))

    def _refuse(self, problem: Problem) -> None:
        body = problem.body()
        headers = {**problem.headers(), "content-length": str(len(body)), "connection": "close"}
        with contextlib.suppress(h11.LocalProtocolError):  # an answer was already sent: only close
            self._write(h11.Response(status_code=problem.status, headers=list(headers.items())))
            self._write(h11.Data(data=body))
            self._write(h11.EndOfMessage())
        self.transport.close()

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _note_progress(self) -> None:
        """Keep the start of the wait for the client: idle between requests, busy once a first byte has come."""
        state = self.conn.their_state
        if state not in (h11.IDLE, h11.SEND_BODY):
            self._awaiting_since, self._idle = None, False
            return
        idle = state is h11.IDLE and not self.conn.trailing_data[0]
        if self._awaiting_since is None or (idle and not self._idle):
            self._awaiting_since = self.loop.time()
        self._idle = idle

    def _write(self, event: h11.Event) -> None:
        self.transport.write(self.conn.send(event) or b"")

    async def _with_connection(self, scope: Any, receive: Any, send: Any) -> None:
        async def joining(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._joining.hold_next()
            await send(message)

        scope[SCOPE_KEY] = self
        await self._asgi_app(scope, receive, joining)
