"""The batch over a device that takes its time: packets in work beside the next frame, and nobody left waiting. The
runner is scripted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import uuid4

import pytest

from engine.batch import Batch
from engine.contract import SAMPLES_PER_FRAME, AudioPacket, SpeechEnd, SpeechEvent, SpeechRequest
from engine.prompt import PromptPlan
from engine.runner import Runner
from engine.stream import BoundedStream
from engine.ticket import Ticket


@dataclass
class SlowAudio:
    """PCM that is ready only once somebody has waited for it, or after some looks at it."""

    packets: list[bytes]
    looks: int
    waited: int = 0

    @property
    def ready(self) -> bool:
        self.looks -= 1
        return self.looks < 0

    def take(self) -> list[bytes]:
        self.waited += 1
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

    def prefill(self, row: int, plan: PromptPlan, **_settings: object) -> None: ...

    def begin_step(self, advance: Sequence[bool]) -> None:
        self.stepped = len(advance)

    def end_step(self) -> list[int]:
        return [1] * self.stepped

    def start_decode(self, rows: Sequence[int], starts: Sequence[int], frames: int) -> SlowAudio:
        self.work.append(SlowAudio([bytes(frames * SAMPLES_PER_FRAME * 2)] * len(rows), self.looks))
        return self.work[-1]

    def move(self, source: int, target: int) -> None:
        assert source != target


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
