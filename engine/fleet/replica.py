"""One engine in the cluster: a Serve replica that speaks for one front door at a time through calls back to it.

Serve starts, watches, replaces and drains replicas. A stream is one call to `speak`, open for as long as the stream
lives: so Serve counts it, drains it and can cancel it. Audio leaves by calls to the front door, one after another.
Serve's own streaming of answers is not used: it buffers without bound where the client is slow.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable
from typing import Any
from uuid import UUID

from engine.contract import (
    AudioPacket,
    CountingEngine,
    EngineCounters,
    EngineState,
    SpeechEngine,
    SpeechEvent,
    SpeechRequest,
)
from engine.errors import EngineError, RequestError
from engine.fleet.cards import write_card
from engine.fleet.identity import Identity
from engine.fleet.line import Opened, Refused, Word
from engine.server.bridge import EventSource

SWITCH_SECONDS = 0.0005  # how long finished audio may wait for the engine's thread to let the event loop have its turn


class Replica:
    """Deployed by `engine.fleet.cluster`. Its constructor returns once the engine has proved itself."""

    def __init__(
        self, make_engine: Callable[[], SpeechEngine], identify: Callable[[], Identity], generation: str
    ) -> None:
        sys.setswitchinterval(SWITCH_SECONDS)
        self._generation = generation
        self._identity = identify()
        self._engine = make_engine()
        self._engine.start()

    def record_replica_metadata(self) -> dict[str, Any]:
        """Serve's hook: read once, when the replica is ready."""
        return write_card(self._generation, self._engine.info, self._identity)

    def check_health(self) -> None:
        """Serve's hook: an engine that has failed is replaced.

        Raises:
            EngineError: the engine has failed.
        """
        if self._engine.state is EngineState.FAILED:
            raise EngineError("the engine has failed")

    async def speak(self, key: str, request: SpeechRequest, door: Any) -> None:
        """Speak one request; everything about it, refusals too, goes to `door.deliver`. `key` is for the router."""
        speaking = asyncio.ensure_future(self._speak(request, door))
        try:
            await asyncio.shield(speaking)
        except asyncio.CancelledError:
            self._engine.cancel(request.request_id)
            await speaking
            raise

    async def count(self, key: str) -> EngineCounters:
        """What the engine has done so far; zeros for one that does not count."""
        return self._engine.counters if isinstance(self._engine, CountingEngine) else EngineCounters()

    def __del__(self) -> None:
        """Serve calls this once no call is open."""
        with contextlib.suppress(AttributeError):  # the constructor failed
            self._engine.close(0.0)

    async def _speak(self, request: SpeechRequest, door: Any) -> None:
        try:
            stream = await asyncio.to_thread(self._engine.submit, request)
        except RequestError as error:
            await _say(door, request.request_id, Refused(code=error.code, detail=error.detail))
            return
        source = EventSource(stream)
        wanted = await _say(door, request.request_id, Opened())
        event: SpeechEvent | None = None
        while event is None or isinstance(event, AudioPacket):
            if not wanted:
                self._engine.cancel(request.request_id)
            event = await source.next()
            if wanted or not isinstance(event, AudioPacket):
                wanted = await _say(door, request.request_id, event)


async def _say(door: Any, request_id: UUID, word: Word) -> bool:
    """Whether the front door wants more; one that is gone does not."""
    from ray.exceptions import RayError

    try:
        wanted: bool = await door.deliver.remote(request_id, word)
    except RayError:
        return False
    return wanted
