"""One request at the front door: the stream that the server reads, filled by the replica's calls.

A call that brings a packet is answered once the server has taken it: that answer is the back-pressure, so one packet
waits here and one in the engine. Lives in the front door's event loop; the server's side is a `BoundedStream`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from engine.contract import AudioPacket, SpeechEnd, SpeechEvent, SpeechFailure, SpeechRequest, StopReason
from engine.errors import RequestError
from engine.fleet.roster import Member
from engine.stream import BoundedStream


@dataclass(frozen=True, kw_only=True)
class Opened:
    """The replica has admitted the request."""


@dataclass(frozen=True, kw_only=True)
class Refused:
    """The replica does not take the request."""

    code: str
    detail: str


Word = Opened | Refused | SpeechEvent


class Line:
    """See the module. `opened` ends with the replica's admission or its refusal."""

    def __init__(self, request: SpeechRequest, member: Member, over: Callable[[Line], None]) -> None:
        self.request = request
        self.member = member
        self.opened: Future[None] = Future()
        self.stream = BoundedStream(request.request_id, self._on_taken)
        self.ended = asyncio.Event()
        self.on_stop: Callable[[], None] = lambda: None
        self._over = over
        self._taken = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._stopping = False

    async def hear(self, word: Word) -> bool:
        """Take in what the replica says; False tells it to stop."""
        if self.ended.is_set():
            return False
        if isinstance(word, Opened):
            self.opened.set_result(None)
        elif isinstance(word, Refused):
            self.refuse(RequestError(word.code, word.detail))
        elif isinstance(word, AudioPacket):
            await self._pass_on(word)
        else:
            self.end(word)
        return not self._stopping

    def stop(self) -> None:
        """The request is cancelled: packets that come now are dropped, and a waiting call is answered at once."""
        if not self._stopping:
            self._stopping = True
            self._taken.set()
            self.on_stop()

    def lose(self, code: str, detail: str) -> None:
        """The replica will say no more: fail what it has left open."""
        if not self.opened.done():
            self.refuse(RequestError(code, detail))
        self.end(SpeechFailure(reason=StopReason.FAILED, code=code, detail=detail))

    def refuse(self, error: RequestError) -> None:
        """Answer whoever waits for admission with a refusal; the line is over."""
        self._close()
        self.opened.set_exception(error)

    def end(self, event: SpeechEnd | SpeechFailure) -> None:
        """Hand over the last event, once; the slot is free before the server learns of it."""
        if not self.ended.is_set():
            self._close()
            self.stream.finish(event)

    async def _pass_on(self, packet: AudioPacket) -> None:
        if self._stopping:
            return
        self._taken.clear()
        self.stream.offer(packet)
        await self._taken.wait()

    def _close(self) -> None:
        if not self.ended.is_set():
            self.ended.set()
            self._taken.set()
            self._over(self)

    def _on_taken(self) -> None:
        self._loop.call_soon_threadsafe(self._taken.set)
