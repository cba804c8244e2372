"""The fleet as one `SpeechEngine`: the server in front of it does not know that there are many.

A request goes to the replica with most free slots and stays there. What a replica loses, its own requests lose, with
`backend_unavailable`; every other line goes on. Everything but `submit`, `cancel` and `start` happens in the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Protocol
from uuid import UUID

from engine.contract import EngineCounters, EngineInfo, EngineState, SpeechRequest
from engine.errors import CapacityExhausted, EngineError, EngineUnavailable, RequestError
from engine.fleet.line import Line, Word
from engine.fleet.report import complaint
from engine.fleet.roster import Member, Roster
from engine.stream import BoundedStream

LOG = logging.getLogger("engine.fleet")

OPEN_SECONDS = 5.0  # for a replica to admit or refuse a request
CANCEL_SECONDS = 3.0  # for a replica to end a cancelled request
COUNT_SECONDS = 2.0  # between two looks at a replica's counters
REST_SECONDS = 30.0  # without new requests, for a replica that did not answer in time
CLOSE_POLL_SECONDS = 0.05


class ReplicaLost(Exception):
    """The replica is gone, or the call can no longer reach it."""


class CallCancelled(Exception):
    """The call was cancelled; the replica's last word may still come."""


class Call(Protocol):
    """One open call to a replica."""

    async def finish(self) -> None:
        """Return when the replica has said everything. Raises `ReplicaLost`, or `CallCancelled`."""
        ...

    def cancel(self) -> None:
        """Have the replica stop. Does not wait."""
        ...


class Cluster(Protocol):
    """What the fleet needs of the cluster; `engine.fleet.cluster` has it from Ray Serve."""

    def deploy(self, roster: Roster) -> None:
        """Start the replicas, keep the roster up to date from now on, and return once as many as were asked for are up.

        Raises:
            EngineError: they cannot start.
        """
        ...

    async def count(self, key: str) -> EngineCounters:
        """What the engine of replica `key` has done so far. Raises `ReplicaLost`."""
        ...

    def speak(self, key: str, request: SpeechRequest) -> Call:
        """Have replica `key` speak; its words come to `FleetEngine.hear`."""
        ...


class FleetEngine:
    """See the module."""

    def __init__(self, cluster: Cluster) -> None:
        self.roster = Roster()
        self._cluster = cluster
        self._loop = asyncio.get_running_loop()
        self._lines: dict[UUID, Line] = {}
        self._info: EngineInfo | None = None
        self._started = False
        self._closing = False
        self._watching: set[asyncio.Task[None]] = set()

    @property
    def info(self) -> EngineInfo:
        """What one replica says of itself, with the slots of all."""
        for member in self.roster.members:
            self._info = member.card.info
        if self._info is None:
            raise EngineError("no replica has been admitted yet")
        return replace(self._info, max_concurrent_requests=self.roster.slots)

    @property
    def state(self) -> EngineState:
        if self._closing:
            return EngineState.DRAINING
        serving = self._started and any(member.listed for member in self.roster.members)
        return EngineState.READY if serving else EngineState.STARTING

    @property
    def active_requests(self) -> int:
        return len(self._lines)

    @property
    def counters(self) -> EngineCounters:
        """Sum over replicas, as they last told."""
        return self.roster.counters

    @property
    def complaint(self) -> str | None:
        """See `ComposedEngine.complaint`."""
        return complaint(self.roster)

    def start(self) -> None:
        """Deploy and return once the replicas are admitted, or one of them is found odd.

        Raises:
            EngineError: they cannot start.
        """
        self._cluster.deploy(self.roster)
        self._started = True
        asyncio.run_coroutine_threadsafe(self._look_after(), self._loop)

    def submit(self, request: SpeechRequest) -> BoundedStream:
        """See `SpeechEngine.submit`. A replica that turns out to be full or gone is passed over for the next."""
        if self.state is not EngineState.READY:
            raise EngineUnavailable("backend_unavailable", "no replica is ready; retry later")
        passed_over: set[str] = set()
        lost = False
        while (member := self.roster.take(request.request_id, frozenset(passed_over))) is not None:
            try:
                return self._ask(request, member)
            except RequestError as error:
                if error.code not in ("capacity_exhausted", "backend_unavailable", "server_shutting_down"):
                    raise
                passed_over.add(member.card.key)
                lost = lost or error.code != "capacity_exhausted"
        if lost:
            raise EngineUnavailable("backend_unavailable", "no replica took the request; retry later")
        raise CapacityExhausted(self.roster.slots)

    def cancel(self, request_id: UUID) -> bool:
        """See `SpeechEngine.cancel`."""
        line = self._lines.get(request_id)
        if line is None:
            return False
        self._loop.call_soon_threadsafe(line.stop)
        return True

    def close(self, grace_seconds: float = 30.0) -> bool:
        """Admit nothing more and end what is left; the replicas are taken down by whoever deployed them."""
        self._closing = True
        asyncio.run_coroutine_threadsafe(self._close(grace_seconds), self._loop).result(grace_seconds + CANCEL_SECONDS)
        return True

    async def hear(self, request_id: UUID, word: Word) -> bool:
        """A replica's word about a request; False when nobody wants to hear more."""
        line = self._lines.get(request_id)
        return line is not None and await line.hear(word)

    def _ask(self, request: SpeechRequest, member: Member) -> BoundedStream:
        line = asyncio.run_coroutine_threadsafe(self._open(request, member), self._loop).result()
        line.opened.result()  # ends by the replica's answer or by `_give_up_opening`
        return line.stream

    async def _open(self, request: SpeechRequest, member: Member) -> Line:
        line = Line(request, member, self._over)
        self._lines[request.request_id] = line
        call = self._cluster.speak(member.card.key, request)
        line.on_stop = call.cancel
        task = self._loop.create_task(self._watch(line, call))
        self._watching.add(task)
        task.add_done_callback(self._watching.discard)
        self._loop.call_later(OPEN_SECONDS, self._give_up_opening, line)
        return line

    def _give_up_opening(self, line: Line) -> None:
        if not line.opened.done():
            self._rest(line.member)
            line.stop()
            line.lose("backend_unavailable", "the replica did not answer in time")

    async def _watch(self, line: Line, call: Call) -> None:
        try:
            await call.finish()
        except ReplicaLost:
            LOG.warning("replica_lost", extra={"fields": {"replica": line.member.index}})
            self.roster.lose(line.member.card.key)
        except CallCancelled:
            await self._last_word(line)
        except Exception as error:  # noqa: BLE001  # a fault of the replica's own code: its request alone fails
            LOG.error("replica_fault", extra={"fields": {"replica": line.member.index, "type": type(error).__name__}})
        line.lose("backend_unavailable", "the replica that spoke is gone; send the request again")

    async def _look_after(self) -> None:
        while not self._closing:
            await asyncio.gather(*(self._count(member) for member in self.roster.members if member.listed))
            await asyncio.sleep(COUNT_SECONDS)

    async def _count(self, member: Member) -> None:
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                member.counters = await self._cluster.count(member.card.key)
        except ReplicaLost:
            self.roster.lose(member.card.key)
        except TimeoutError:
            self._rest(member)

    async def _last_word(self, line: Line) -> None:
        try:
            async with asyncio.timeout(CANCEL_SECONDS):
                await line.ended.wait()
        except TimeoutError:
            self._rest(line.member)

    def _rest(self, member: Member) -> None:
        LOG.warning("replica_silent", extra={"fields": {"replica": member.index}})
        self.roster.rest(member, REST_SECONDS)

    def _over(self, line: Line) -> None:
        self._lines.pop(line.request.request_id, None)
        self.roster.give_back(line.member, line.request.request_id)

    async def _close(self, grace_seconds: float) -> None:
        until = self._loop.time() + grace_seconds
        while self._lines and self._loop.time() < until:
            await asyncio.sleep(CLOSE_POLL_SECONDS)
        for line in list(self._lines.values()):
            line.stop()
            line.lose("server_shutting_down", "the fleet is shutting down; send the request elsewhere")
