"""The batch over a device that takes its time: packets in work beside the next frame, and nobody left waiting. The
runner is scripted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import uuid4

import pytest

from engine.audio_work import Packet
from engine.batch import SPOILT_IN_A_ROW, Batch
from engine.contract import SAMPLES_PER_FRAME, AudioPacket, SpeechEnd, SpeechEvent, SpeechFailure, SpeechRequest
from engine.frame import LOST
from engine.prompt import PromptPlan
from engine.runner import Runner
from engine.stream import BoundedStream
from engine.ticket import Ticket


@dataclass
class SlowAudio:
    """PCM that is ready only once somebody has waited for it, or after some looks at it."""

    packets: list[Packet]
    looks: int
    waited: int = 0
    fault: Exception | None = None

    @property
    def ready(self) -> bool:
        self.looks -= 1
        return self.looks < 0

    def take(self) -> list[Packet]:
        self.waited += 1
        if self.fault:
            raise self.fault
        return self.packets


@dataclass
class SlowRunner:
    """No tensors: notes what is asked of it. Every packet takes `looks` looks."""

    looks: int
    eos: int = 0
    bytes_per_row: int = 1
    on_host: bool = False
    graph_replays: int = 0
    work: list[SlowAudio] = field(default_factory=list)
    busy: dict[int, int] = field(default_factory=dict)
    stepped: int = 0
    following: list[int] = field(default_factory=list)  # instead of an ordinary code, once
    spoilt_packets: set[int] = field(default_factory=set)  # by order of launch
    log: list[str] = field(default_factory=list)

    def prefill(self, row: int, plan: PromptPlan, **_settings: object) -> None: ...

    def begin_step(self, advance: Sequence[bool]) -> None:
        self.stepped = len(advance)

    def end_step(self) -> list[int]:
        codes = (self.following + [1] * self.stepped)[: self.stepped]
        self.following = []
        return codes

    def start_decode(self, rows: Sequence[int], starts: Sequence[int], frames: int) -> SlowAudio:
        pcm = bytes(frames * SAMPLES_PER_FRAME * 2)
        first = None if len(self.work) in self.spoilt_packets else pcm
        self.work.append(SlowAudio([first] + [pcm] * (len(rows) - 1), self.looks))
        return self.work[-1]

    def move(self, source: int, target: int) -> None:
        assert source != target
        self.log.append(f"move {source} to {target}")

    def scrub(self, row: int) -> None:
        self.log.append(f"scrub {row}")


@dataclass
class Listener:
    """Takes every event as soon as it is there."""

    ticket: Ticket
    events: list[SpeechEvent]


def listener(frames: int) -> Listener:
    events: list[SpeechEvent] = []
    request = SpeechRequest(request_id=uuid4(), text="x", voice_description="y", seed=0, max_frames=frames)
    stream = BoundedStream(request.request_id, lambda: None)
    stream.notify(lambda: events.extend(filter(None, [stream.take(timeout=0)])))
    plan = PromptPlan(text=(1,), codec=(None,), trailing=())
    return Listener(Ticket(request=request, plan=plan, stream=stream), events)


def batch_over(runner: SlowRunner, left: list[Ticket]) -> Batch:
    scripted: Runner = runner  # type: ignore[assignment]  # as much of a runner as a batch uses
    return Batch(scripted, capacity=8, on_leave=left.append)


@pytest.mark.parametrize("looks", [0, 1, 2, 5])
@pytest.mark.parametrize("frames", [(9, 9, 9, 9), (1, 7, 8, 9), (12, 3, 3, 11), (5, 6, 5, 6)])
def test_every_request_ends_while_the_batch_can_move(looks: int, frames: tuple[int, ...]) -> None:
    left: list[Ticket] = []
    batch = batch_over(SlowRunner(looks), left)
    listeners = [listener(count) for count in frames]
    for each in listeners:
        batch.admit(each.ticket)
        if batch.can_move:
            batch.turn()  # newcomers arrive one a turn, so packets fall due at different times
    turns = 0
    while batch.can_move:
        batch.turn()
        turns += 1
        assert turns < 200
    assert batch.empty
    assert len(left) == len(frames)
    for each, count in zip(listeners, frames, strict=True):
        packets = [event for event in each.events if isinstance(event, AudioPacket)]
        assert isinstance(each.events[-1], SpeechEnd)
        assert sum(packet.frames for packet in packets) == count
        assert [packet.final for packet in packets] == [False] * (len(packets) - 1) + [True]
        assert [packet.first_frame for packet in packets] == [
            sum(packet.frames for packet in packets[:place]) for place in range(len(packets))
        ]


def test_a_slow_packet_does_not_hold_up_the_next_frame() -> None:
    runner = SlowRunner(looks=100)
    batch = batch_over(runner, [])
    batch.admit(listener(50).ticket)
    for _ in range(2):
        batch.turn()  # the first packet is one frame; one more frame fills the second
    assert batch.counters.frame_steps == 2
    assert [work.waited for work in runner.work] == [0]


def test_a_cancelled_request_with_a_packet_in_work_leaves_and_hears_no_more_audio() -> None:
    left: list[Ticket] = []
    runner = SlowRunner(looks=100)
    batch = batch_over(runner, left)
    first, second = listener(50), listener(3)
    batch.admit(first.ticket)
    batch.admit(second.ticket)
    batch.turn()
    first.ticket.cancelled = True
    while batch.can_move:
        batch.turn()
    assert not any(isinstance(event, AudioPacket) for event in first.events)
    assert isinstance(second.events[-1], SpeechEnd)
    assert set(map(id, left)) == {id(first.ticket), id(second.ticket)}


@pytest.mark.parametrize("fault", [None, RuntimeError("device fault")])
def test_dropped_rows_are_free_of_packets_in_work(fault: Exception | None) -> None:
    runner = SlowRunner(looks=100)
    batch = batch_over(runner, [])
    batch.admit(listener(50).ticket)
    batch.turn()
    (work,) = runner.work
    work.fault = fault
    assert work.waited == 0
    batch.drop()
    assert work.waited == 1
    assert batch.empty
    assert not batch.can_move


def finish(batch: Batch) -> None:
    for _ in range(200):
        if batch.can_move:
            batch.turn()
    assert batch.empty


def test_a_lost_state_fails_its_request_alone_and_its_cache_is_cleared_before_another_moves_there() -> None:
    left: list[Ticket] = []
    runner = SlowRunner(looks=0)
    batch = batch_over(runner, left)
    lost, healthy = listener(30), listener(9)
    batch.admit(lost.ticket)
    batch.admit(healthy.ticket)
    runner.following = [LOST]
    finish(batch)
    (last,) = lost.events
    assert isinstance(last, SpeechFailure)
    assert last.code == "internal_error"
    assert isinstance(healthy.events[-1], SpeechEnd)
    assert runner.log == ["scrub 0", "move 1 to 0"]
    assert left == [lost.ticket, healthy.ticket]


@pytest.mark.parametrize("looks", [0, 2, 100])
@pytest.mark.parametrize(("packet", "heard"), [(0, 0), (1, 1), (3, 3)])
def test_a_packet_with_a_sample_that_is_no_number_is_not_handed_over(looks: int, packet: int, heard: int) -> None:
    """The last packet too: 8 frames are packets of 1, 1, 2 and 4."""
    runner = SlowRunner(looks=looks, spoilt_packets={packet})
    batch = batch_over(runner, [])
    lost = listener(8)
    batch.admit(lost.ticket)
    finish(batch)
    *packets, last = lost.events
    assert isinstance(last, SpeechFailure)
    assert len(packets) == heard


def test_one_lost_request_after_another_is_the_owners_to_look_into() -> None:
    runner = SlowRunner(looks=0)
    batch = batch_over(runner, [])

    def lose(count: int) -> None:
        for _ in range(count):
            batch.admit(listener(30).ticket)
            runner.following = [LOST]
            batch.turn()

    lose(SPOILT_IN_A_ROW - 1)
    batch.admit(listener(2).ticket)
    finish(batch)  # a good one between
    lose(SPOILT_IN_A_ROW - 1)
    with pytest.raises(ArithmeticError):
        lose(1)
