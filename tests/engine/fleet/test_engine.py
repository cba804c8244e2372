"""The fleet as an engine, before a cluster that a test plays by hand: refusals, losses, silence."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import uuid4

import pytest

from engine.contract import AudioPacket, EngineCounters, SpeechFailure, SpeechRequest, StopReason
from engine.errors import CapacityExhausted, EngineUnavailable, RequestError
from engine.fleet import engine as fleet_engine
from engine.fleet.engine import CallCancelled, FleetEngine, ReplicaLost
from engine.fleet.line import Opened, Refused
from engine.fleet.roster import Roster
from engine.stream import BoundedStream
from tests.engine.fleet.test_roster import card

FAILURE = SpeechFailure(reason=StopReason.CANCELLED, code="request_cancelled", detail="cancelled")


class Call:
    """An open call; `done` settles it."""

    def __init__(self) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.cancelled = False

    async def finish(self) -> None:
        await self.done

    def cancel(self) -> None:
        self.cancelled = True
        if not self.done.done():
            self.done.set_exception(CallCancelled())


class Stage:
    """A cluster of two replicas, `a` and `b`; `act` says what a replica does when it is called."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Call]] = []
        self.act: Callable[[str, SpeechRequest, Call], Awaitable[None]] = self.admit
        self.fleet = FleetEngine(self)
        self._acts: set[asyncio.Future[None]] = set()

    def deploy(self, roster: Roster) -> None:
        roster.update([card("a", slots=1), card("b", slots=1)])

    def speak(self, key: str, request: SpeechRequest) -> Call:
        call = Call()
        self.calls.append((key, call))
        self._acts.add(asyncio.ensure_future(self.act(key, request, call)))
        return call

    async def count(self, key: str) -> EngineCounters:
        return EngineCounters(frame_steps=7)

    async def admit(self, key: str, request: SpeechRequest, call: Call) -> None:
        await self.fleet.hear(request.request_id, Opened())

    async def submit(self) -> tuple[SpeechRequest, BoundedStream]:
        request = SpeechRequest(
            request_id=uuid4(), text="Hello.", voice_description="A calm voice.", seed=1, max_frames=10
        )
        return request, await asyncio.to_thread(self.fleet.submit, request)

    @property
    def free(self) -> list[int]:
        return [member.free for member in self.fleet.roster.members]


def packet(sequence: int) -> AudioPacket:
    return AudioPacket(sequence=sequence, first_frame=sequence, frames=1, pcm=b"\0" * 3_840, final=False)


def play(scene: Callable[[Stage], Awaitable[None]]) -> None:
    async def whole() -> None:
        stage = Stage()
        stage.fleet.start()
        await scene(stage)

    asyncio.run(whole())


async def last_event(stream: BoundedStream) -> SpeechFailure:
    event = await asyncio.to_thread(stream.take, 2.0)
    assert isinstance(event, SpeechFailure)
    return event


def test_a_replica_that_refuses_for_want_of_a_slot_is_passed_over() -> None:
    async def scene(stage: Stage) -> None:
        async def act(key: str, request: SpeechRequest, call: Call) -> None:
            word = Refused(code="capacity_exhausted", detail="full") if key == "a" else Opened()
            await stage.fleet.hear(request.request_id, word)

        stage.act = act
        await stage.submit()
        assert [key for key, _ in stage.calls] == ["a", "b"]
        assert stage.free == [1, 0]

    play(scene)


def test_429_only_once_every_replica_is_full() -> None:
    async def scene(stage: Stage) -> None:
        await stage.submit()
        await stage.submit()
        with pytest.raises(CapacityExhausted, match="all 2 slots"):
            await stage.submit()

    play(scene)


def test_a_refusal_of_the_request_itself_is_the_answer() -> None:
    async def scene(stage: Stage) -> None:
        async def act(key: str, request: SpeechRequest, call: Call) -> None:
            await stage.fleet.hear(request.request_id, Refused(code="invalid_text", detail="too long"))

        stage.act = act
        with pytest.raises(RequestError, match="too long") as refusal:
            await stage.submit()
        assert refusal.value.code == "invalid_text"
        assert stage.free == [1, 1]

    play(scene)


def test_a_lost_replica_ends_its_own_line_and_gets_no_other() -> None:
    async def scene(stage: Stage) -> None:
        _, lost = await stage.submit()
        _, kept = await stage.submit()
        stage.calls[0][1].done.set_exception(ReplicaLost())
        assert (await last_event(lost)).code == "backend_unavailable"
        assert kept.take(timeout=0) is None
        assert [member.card.key for member in stage.fleet.roster.members] == ["b"]
        with pytest.raises(CapacityExhausted, match="all 1 slots"):
            await stage.submit()

    play(scene)


def test_all_replicas_lost_before_admission_is_503(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(stage: Stage) -> None:
        async def act(key: str, request: SpeechRequest, call: Call) -> None:
            call.done.set_exception(ReplicaLost())

        stage.act = act
        with pytest.raises(EngineUnavailable, match="no replica took the request"):
            await stage.submit()

    play(scene)


def test_a_replica_that_does_not_answer_rests_and_another_one_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_engine, "OPEN_SECONDS", 0.05)

    async def scene(stage: Stage) -> None:
        async def act(key: str, request: SpeechRequest, call: Call) -> None:
            if key == "b":
                await stage.fleet.hear(request.request_id, Opened())

        stage.act = act
        await stage.submit()
        assert [key for key, _ in stage.calls] == ["a", "b"]
        assert stage.calls[0][1].cancelled
        assert stage.free == [0, 0]
        assert stage.fleet.roster.slots == 2

    play(scene)


def test_a_packet_is_answered_once_it_is_taken() -> None:
    async def scene(stage: Stage) -> None:
        request, stream = await stage.submit()
        delivery = asyncio.ensure_future(stage.fleet.hear(request.request_id, packet(0)))
        await asyncio.sleep(0.05)
        assert not delivery.done()
        assert stream.take(timeout=0) == packet(0)
        assert await asyncio.wait_for(delivery, 2.0)

    play(scene)


def test_cancelling_answers_a_waiting_packet_and_waits_for_the_last_word() -> None:
    async def scene(stage: Stage) -> None:
        request, stream = await stage.submit()
        delivery = asyncio.ensure_future(stage.fleet.hear(request.request_id, packet(0)))
        await asyncio.sleep(0)
        assert stage.fleet.cancel(request.request_id)
        assert not await asyncio.wait_for(delivery, 2.0)
        assert stage.calls[0][1].cancelled
        assert stage.free == [0, 1]  # the engine has not said yet that the row is free
        assert not await stage.fleet.hear(request.request_id, FAILURE)
        assert stage.free == [1, 1]
        assert stream.take(timeout=0) == packet(0)
        assert stream.take(timeout=0) == FAILURE
        assert not stage.fleet.cancel(request.request_id)

    play(scene)


def test_a_cancelled_request_without_a_last_word_is_ended_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_engine, "CANCEL_SECONDS", 0.05)

    async def scene(stage: Stage) -> None:
        request, stream = await stage.submit()
        stage.fleet.cancel(request.request_id)
        assert (await last_event(stream)).code == "backend_unavailable"
        assert stage.free == [0, 1]  # it rests
        assert stage.fleet.active_requests == 0

    play(scene)


def test_closing_ends_what_is_left() -> None:
    async def scene(stage: Stage) -> None:
        _, stream = await stage.submit()
        assert await asyncio.to_thread(stage.fleet.close, 0.0)
        assert (await last_event(stream)).code == "server_shutting_down"
        with pytest.raises(EngineUnavailable):
            await stage.submit()

    play(scene)


def test_counters_of_replicas_are_summed_and_outlive_them() -> None:
    async def scene(stage: Stage) -> None:
        await asyncio.sleep(0.05)
        assert stage.fleet.counters == EngineCounters(frame_steps=14)
        stage.fleet.roster.lose("a")
        assert stage.fleet.counters == EngineCounters(frame_steps=14)

    play(scene)
