"""One admitted request, from submission until the engine has ended it.

A session is cancelled by its first cause only, and lives on until the engine's last event (retirement). Where that
event does not come in time the session is lost: its owner keeps a tombstone. Not covered: admission (`desk`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from engine.contract import (
    AudioPacket,
    SpeechEvent,
    SpeechFailure,
    SpeechRequest,
    SpeechStream,
    StopReason,
)
from engine.server.bridge import EventSource


class Cause(StrEnum):
    """Why the server cancelled a request; also the metric's label."""

    DELETED = "deleted"
    DISCONNECTED = "disconnected"
    SLOW_READER = "slow_reader"
    SHUTDOWN = "shutdown"
    STALLED = "stalled"


_EXPLANATIONS = {
    Cause.DELETED: ("request_cancelled", "the request was cancelled by a DELETE"),
    Cause.DISCONNECTED: ("request_cancelled", "the client left"),
    Cause.SLOW_READER: ("request_cancelled", "the client did not read"),
    Cause.SHUTDOWN: ("server_shutting_down", "the server is shutting down; send the request elsewhere"),
    Cause.STALLED: ("backend_unavailable", "the engine made no progress in time; send the request again later"),
}


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long a session waits, in seconds: for an engine at work, and for one told to stop."""

    stall: float
    retirement: float


class Session:
    """One request in the event loop. Read it with `next` until `ended`."""

    def __init__(
        self,
        *,
        request: SpeechRequest,
        stream: SpeechStream,
        patience: Patience,
        stop: Callable[[UUID], None],
        released: Callable[[Session], None],
        hold: bool = False,
    ) -> None:
        self.request = request
        self.cause: Cause | None = None
        self.ended = False
        self.lost = False
        self._source = EventSource(stream)
        self._patience = patience
        self._stop = stop
        self._released = released
        self._hold = hold
        self._timer: asyncio.Timeout | None = None
        self._loop = asyncio.get_running_loop()
        self._retire_by = 0.0

    async def next(self) -> SpeechEvent:
        """The next event. After a cancellation packets are dropped and only the last event comes through."""
        while True:
            event = await self._next_in_time()
            if event is None:
                continue
            if not isinstance(event, AudioPacket):
                self.ended = True
                if not self._hold:
                    self.release()
                return self._explained(event)
            if self.cause is None:
                return event

    def cancel(self, cause: Cause) -> None:
        """Tell the engine to stop, once, without waiting for it."""
        if self.cause is not None or self.ended:
            return
        self.cause = cause
        self._retire_by = self._loop.time() + self._patience.retirement
        if self._timer is not None:
            self._timer.reschedule(self._retire_by)
        self._stop(self.request.request_id)

    def release(self) -> None:
        """Give the slot back. Happens by itself with the last event, unless the session is on hold."""
        if self.ended:
            self._released(self)

    async def retire(self) -> None:
        """See the engine end the request, whatever the client does; then give the slot back."""
        if not self.ended:
            self.cancel(Cause.DISCONNECTED)
        while not self.ended:
            await self.next()
        self.release()

    async def _next_in_time(self) -> SpeechEvent | None:
        until = self._loop.time() + self._patience.stall if self.cause is None else self._retire_by
        try:
            async with asyncio.timeout_at(until) as self._timer:
                return await self._source.next()
        except TimeoutError:
            self._timer = None  # spent: it cannot be rescheduled
            if self.cause is None:
                self.cancel(Cause.STALLED)
                return None
            return self._give_up()
        finally:
            self._timer = None

    def _give_up(self) -> SpeechFailure:
        self.lost = True
        detail = f"the engine did not end the request within {self._patience.retirement:g} s"
        return SpeechFailure(reason=StopReason.FAILED, code="retirement_timeout", detail=detail)

    def _explained(self, event: SpeechEvent) -> SpeechEvent:
        if isinstance(event, SpeechFailure) and self.cause is not None and not self.lost:
            code, detail = _EXPLANATIONS[self.cause]
            return SpeechFailure(reason=StopReason.CANCELLED, code=code, detail=detail)
        return event
