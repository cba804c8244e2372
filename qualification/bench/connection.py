"""One HTTP/1.1 connection whose every socket read is stamped before anything looks at the bytes.

HTTP framing is h11's; this file owns the socket, the stamps and the deadlines. A connection serves one exchange and
is then closed: opening it is never part of a measurement, and nothing of one request can leak into the next.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import h11

from qualification.bench.clock import Clock
from qualification.bench.target import Target

_MAX_HEADER_BYTES = 65_536


class ConnectionFailed(Exception):
    """The transport failed. `code` is one of `connect_failed`, `connection_lost`, `malformed_http`."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class DeadlinePassed(Exception):
    """A deadline passed. `code` is one of `connect_timeout`, `headers_timeout`, `silence_timeout`, `total_timeout`."""

    def __init__(self, code: str, seconds: float) -> None:
        super().__init__(f"nothing within {seconds:g} s")
        self.code = code
        self.detail = f"nothing within {seconds:g} s"


@dataclass(frozen=True, kw_only=True)
class Deadlines:
    """Seconds granted to one exchange. `headers` runs from t0, `silence` between two reads, `total` from t0."""

    connect: float = 5.0
    headers: float = 60.0
    silence: float = 30.0
    total: float = 180.0


class _Socket(asyncio.Protocol):
    """Queues (stamp, bytes) of each read; empty bytes mark the end of the stream."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._reads: deque[tuple[int, bytes]] = deque()
        self._wake = asyncio.Event()
        self._lost: Exception | None = None

    def data_received(self, data: bytes) -> None:
        at_ns = self._clock.now_ns()
        self._reads.append((at_ns, data))
        self._wake.set()

    def eof_received(self) -> bool:
        self._reads.append((self._clock.now_ns(), b""))
        self._wake.set()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = exc
        self._reads.append((self._clock.now_ns(), b""))
        self._wake.set()

    async def read(self) -> tuple[int, bytes]:
        while not self._reads:
            self._wake.clear()
            await self._wake.wait()
        at_ns, data = self._reads.popleft()
        if not data and self._lost is not None:
            raise ConnectionFailed("connection_lost", f"the connection broke: {self._lost}")
        return at_ns, data


class Connection:
    """An open connection, good for one request and its response."""

    def __init__(self, target: Target, clock: Clock, deadlines: Deadlines, transport: asyncio.Transport,
                 socket: _Socket) -> None:  # fmt: skip
        self._target = target
        self._clock = clock
        self._deadlines = deadlines
        self._transport = transport
        self._socket = socket
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEADER_BYTES)
        self._t0_ns = 0
        self._heard = False

    @classmethod
    async def open(cls, target: Target, clock: Clock, deadlines: Deadlines) -> Connection:
        """Connect, TLS handshake included.

        Raises:
            ConnectionFailed: `connect_failed`.
            DeadlinePassed: `connect_timeout`.
        """
        loop = asyncio.get_running_loop()
        context = ssl.create_default_context() if target.tls else None
        try:
            async with asyncio.timeout(deadlines.connect):
                transport, socket = await loop.create_connection(
                    lambda: _Socket(clock), target.host, target.port, ssl=context
                )
        except TimeoutError as error:
            raise DeadlinePassed("connect_timeout", deadlines.connect) from error
        except OSError as error:
            raise ConnectionFailed("connect_failed", f"cannot connect to {target.url}: {error}") from error
        return cls(target, clock, deadlines, transport, socket)

    def send(self, method: str, path: str, headers: Sequence[tuple[str, str]], body: bytes) -> int:
        """Write the whole request at once; returns t0, read immediately before the first byte is written."""
        fixed = [("Host", self._target.host_header), ("Connection", "close"), ("Content-Length", str(len(body)))]
        request = h11.Request(method=method, target=self._target.prefix + path, headers=[*fixed, *headers])
        wire = self._http.send(request) or b""
        wire += self._http.send(h11.Data(data=body)) or b""
        wire += self._http.send(h11.EndOfMessage()) or b""
        self._t0_ns = self._clock.now_ns()
        self._transport.write(wire)
        return self._t0_ns

    async def events(self) -> AsyncIterator[tuple[int, h11.Response | h11.Data | h11.EndOfMessage]]:
        """Response events with the stamp of the read that completed them.

        Raises:
            ConnectionFailed: `connection_lost` or `malformed_http`.
            DeadlinePassed: `headers_timeout`, `silence_timeout` or `total_timeout`.
        """
        at_ns = self._t0_ns
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                code = "connection_lost" if self._http.trailing_data[1] else "malformed_http"
                raise ConnectionFailed(code, str(error)) from error
            if event is h11.NEED_DATA:
                at_ns, data = await self._read()
                self._http.receive_data(data)
            elif isinstance(event, h11.Response | h11.Data):
                self._heard = True
                yield at_ns, event
            elif isinstance(event, h11.EndOfMessage):
                yield at_ns, event
                return
            elif isinstance(event, h11.ConnectionClosed) or event is h11.PAUSED:
                raise ConnectionFailed("connection_lost", "the server closed the connection without a response")

    def close(self) -> None:
        """Drop the connection at once; safe to call twice."""
        self._transport.abort()

    async def _read(self) -> tuple[int, bytes]:
        elapsed = (self._clock.now_ns() - self._t0_ns) / 1e9
        limits = self._deadlines
        first = ("silence_timeout", limits.silence) if self._heard else ("headers_timeout", limits.headers - elapsed)
        code, seconds = min(first, ("total_timeout", limits.total - elapsed), key=lambda item: item[1])
        granted = {"silence_timeout": limits.silence, "headers_timeout": limits.headers}.get(code, limits.total)
        if seconds <= 0.0:  # a server that never pauses must still meet the deadline
            raise DeadlinePassed(code, granted)
        try:
            async with asyncio.timeout(seconds):
                return await self._socket.read()
        except TimeoutError as error:
            raise DeadlinePassed(code, granted) from error
