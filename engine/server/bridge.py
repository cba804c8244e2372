"""From the engine's thread to the event loop: await the next event of a `SpeechStream`.

The stream itself holds one undelivered packet and the engine parks the row meanwhile, so not calling `next` is the
back-pressure; nothing is buffered here.
"""

from __future__ import annotations

import asyncio
import contextlib

from engine.contract import SpeechEvent, SpeechStream


class EventSource:
    """One consumer of one stream, inside one event loop."""

    def __init__(self, stream: SpeechStream) -> None:
        self._stream = stream
        self._loop = asyncio.get_running_loop()
        self._ready = asyncio.Event()
        stream.notify(self._wake)

    async def next(self) -> SpeechEvent:
        """The next event, waiting as long as it takes; bound the wait from outside."""
        while True:
            self._ready.clear()
            event = self._stream.take(timeout=0)
            if event is not None:
                return event
            await self._ready.wait()

    def _wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has closed: nobody is left to wake
            self._loop.call_soon_threadsafe(self._ready.set)
