"""The hand-over between the engine's thread and whoever listens to one request.

Holds at most one undelivered audio packet: while it is not taken, `has_room` is False and the scheduler parks the row,
so a slow reader costs no memory. The terminal event always fits, and nothing comes after it: what an engine that was
given up still makes is dropped here.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from uuid import UUID

from engine.contract import AudioPacket, SpeechEnd, SpeechEvent, SpeechFailure

log = logging.getLogger("engine")

CAPACITY = 1  # undelivered audio packets


class BoundedStream:
    """One request's events, in order: audio packets, then exactly one end or failure."""

    def __init__(self, request_id: UUID, on_taken: Callable[[], None]) -> None:
        self._request_id = request_id
        self._on_taken = on_taken  # wakes the engine: there may be room again
        self._events: deque[SpeechEvent] = deque()
        self._condition = threading.Condition()
        self._wake: Callable[[], None] | None = None
        self._over = False

    @property
    def request_id(self) -> UUID:
        return self._request_id

    @property
    def has_room(self) -> bool:
        """Whether another audio packet may be offered."""
        return len(self._events) < CAPACITY

    def take(self, timeout: float | None = None) -> SpeechEvent | None:
        """See `SpeechStream.take`."""
        with self._condition:
            if not self._condition.wait_for(lambda: bool(self._events), timeout):
                return None
            event = self._events.popleft()
        if isinstance(event, AudioPacket):
            self._on_taken()
        return event

    def notify(self, wake: Callable[[], None]) -> None:
        """See `SpeechStream.notify`; calls `wake` at once when an event is already there."""
        with self._condition:
            self._wake = wake
            waiting = bool(self._events)
        if waiting:
            wake()

    def offer(self, packet: AudioPacket) -> None:
        """Engine side: hand over one packet; only while `has_room`. Dropped after the terminal event."""
        self._put(packet, last=False)

    def finish(self, event: SpeechEnd | SpeechFailure) -> None:
        """Engine side, any thread: hand over the terminal event. The first one counts, any further one is dropped."""
        self._put(event, last=True)

    def _put(self, event: SpeechEvent, *, last: bool) -> None:
        with self._condition:
            if self._over:
                return
            assert last or self.has_room, "the scheduler offered a packet without room"
            self._over = last
            self._events.append(event)
            wake = self._wake
            self._condition.notify_all()
        if wake is not None:
            _ring(wake)


def _ring(wake: Callable[[], None]) -> None:
    """Call a listener from the engine's thread, which must survive whatever the listener does."""
    try:
        wake()
    except Exception:
        log.exception("a stream's listener failed")
