"""Sending under a deadline: one chunk at a time, each handed to the kernel before the next is asked for.

A chunk that cannot be handed over in time means a client that does not read: the connection is cut and the owner told.
Afterwards writes do nothing, so that the owner can see its request to the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from starlette.types import Send

from engine.server.connection import Connection


class Outlet:
    """The response of one exchange."""

    def __init__(self, send: Send, connection: Connection | None, seconds: float) -> None:
        self.closed = False
        self.bytes_sent = 0
        self.on_stall: Callable[[], None] = lambda: None
        self._send = send
        self._connection = connection
        self._seconds = seconds

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send status and headers."""
        pairs = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})

    async def write(self, data: bytes) -> None:
        """Hand `data` to the kernel, or cut the connection where that takes too long."""
        if self.closed:
            return
        try:
            async with asyncio.timeout(self._seconds):
                await self._send({"type": "http.response.body", "body": data, "more_body": True})
                await self._send({"type": "http.response.body", "body": b"", "more_body": True})  # waits for the first
        except TimeoutError:
            self.break_off()
            self.on_stall()
        else:
            self.bytes_sent += len(data)

    async def finish(self) -> None:
        """End the message."""
        if not self.closed:
            self.closed = True
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def break_off(self) -> None:
        """Cut the connection; what the client has not taken is dropped."""
        self.closed = True
        if self._connection is not None:
            self._connection.abort()

    def leave_broken(self) -> None:
        """Close without ending the message, so that the client knows that its answer is incomplete."""
        self.closed = True
        if self._connection is not None:
            self._connection.hang_up()
