"""Who steps, who waits, which packet is due: examples, then properties over whole lives of random requests."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.contract import StopReason
from engine.scheduler import PacketJob, Scheduler, packet_frames


def full() -> bool:
    return False


def free() -> bool:
    return True


def test_packets_grow_one_two_four_four() -> None:
    assert [packet_frames(sequence) for sequence in range(6)] == [1, 1, 2, 4, 4, 4]


def test_end_of_speech_at_the_very_ceiling_is_a_natural_end() -> None:
    scheduler: Scheduler[str] = Scheduler(capacity=2)
    scheduler.admit("natural", max_frames=1, has_room=free)
    scheduler.admit("bounded", max_frames=1, has_room=free)
    scheduler.commit([True, True], [True, False])
    assert [track.stop for track in scheduler.tracks] == [StopReason.EOS, StopReason.MAX_FRAMES]


def test_a_full_reader_parks_only_its_own_row() -> None:
    scheduler: Scheduler[str] = Scheduler(capacity=3)
    for owner, room in (("slow", full), ("quick", free), ("newcomer", free)):
        scheduler.admit(owner, max_frames=9, has_room=room)
    scheduler.commit([True, True, False], [False] * 3)
    assert scheduler.due() == [PacketJob(rows=(1,), frames=1)]
    scheduler.tracks[1].emitted, scheduler.tracks[1].packets = 1, 1
    assert scheduler.advancing() == [False, True, True]


def test_trailing_rows_that_wait_are_not_stepped_at_all() -> None:
    scheduler: Scheduler[str] = Scheduler(capacity=2)
    scheduler.admit("steps", max_frames=9, has_room=free)
    scheduler.admit("waits", max_frames=9, has_room=full)
    scheduler.commit([False, True], [False, False])
    assert scheduler.advancing() == [True]
    scheduler.commit([True], [False])
    assert scheduler.advancing() == []


def test_first_packets_come_before_all_others_and_equal_sizes_together() -> None:
    scheduler: Scheduler[str] = Scheduler(capacity=4)
    for owner, frames, packets in (("late", 7, 3), ("first", 1, 0), ("late-too", 7, 3), ("first-too", 1, 0)):
        row = scheduler.admit(owner, max_frames=99, has_room=free)
        track = scheduler.tracks[row]
        track.frames, track.packets, track.emitted = frames, packets, 3 if packets else 0
    assert scheduler.due() == [PacketJob(rows=(1, 3), frames=1), PacketJob(rows=(0, 2), frames=4)]


def test_a_draw_of_a_row_that_did_not_advance_counts_for_nothing() -> None:
    scheduler: Scheduler[str] = Scheduler(capacity=1)
    scheduler.admit("parked", max_frames=2, has_room=free)
    scheduler.commit([False], [True])
    assert scheduler.tracks[0].stop is None
    assert scheduler.tracks[0].frames == 0


@pytest.mark.parametrize(("row", "moved", "left"), [(2, None, ["a", "b"]), (0, 2, ["c", "b"]), (1, 2, ["a", "c"])])
def test_a_freed_row_is_filled_by_the_last(row: int, moved: int | None, left: list[str]) -> None:
    scheduler: Scheduler[str] = Scheduler(capacity=3)
    for owner in "abc":
        scheduler.admit(owner, max_frames=1, has_room=free)
    assert scheduler.release(row) == moved
    assert [track.owner for track in scheduler.tracks] == left


@dataclass(kw_only=True, eq=False)
class Listener:
    """A simulated request: where it really ends, how often its reader takes, what it was given."""

    ceiling: int
    natural: int  # frames after which it draws end of speech
    eagerness: float
    buffered: bool = False
    generated: int = 0
    packets: list[int] = field(default_factory=list)
    final: list[bool] = field(default_factory=list)

    @property
    def length(self) -> int:
        return min(self.ceiling, self.natural)

    @property
    def has_room(self) -> bool:
        return not self.buffered


listeners = st.builds(
    Listener, ceiling=st.integers(1, 30), natural=st.integers(2, 40), eagerness=st.sampled_from([0.1, 0.5, 1.0])
)


def turn(scheduler: Scheduler[Listener], chance: random.Random) -> Iterator[Listener]:
    """One turn of the engine over simulated requests; yields those that finished."""
    flags = scheduler.advancing()
    assert len(flags) <= len(scheduler.tracks)
    assert not flags or flags[-1]
    for track, advances in zip(scheduler.tracks, flags, strict=False):
        track.owner.generated += advances
    scheduler.commit(flags, [track.owner.generated >= track.owner.natural for track in scheduler.tracks])
    for job in scheduler.due():
        for row in job.rows:
            track = scheduler.tracks[row]
            assert not track.owner.buffered, "a packet was due without room"
            track.emitted += job.frames
            track.packets += 1
            track.owner.buffered = True
            track.owner.packets.append(job.frames)
            track.owner.final.append(track.delivered)
    for row in reversed(range(len(scheduler.tracks))):
        track = scheduler.tracks[row]
        if track.delivered:
            natural = track.owner.natural <= track.owner.ceiling
            assert track.stop is (StopReason.EOS if natural else StopReason.MAX_FRAMES)
            scheduler.release(row)
            yield track.owner
        elif track.owner.buffered and chance.random() < track.owner.eagerness:
            track.owner.buffered = False


@settings(deadline=None, max_examples=150)
@given(requests=st.lists(listeners, min_size=1, max_size=12), capacity=st.integers(1, 5), seed=st.integers(0, 2**32))
def test_every_life_is_complete_in_order_and_bounded(requests: list[Listener], capacity: int, seed: int) -> None:
    chance = random.Random(seed)
    scheduler: Scheduler[Listener] = Scheduler(capacity=capacity)
    waiting, done = list(requests), 0
    for _ in range(20_000):
        while waiting and len(scheduler.tracks) < capacity:
            owner = waiting.pop()
            scheduler.admit(owner, max_frames=owner.ceiling, has_room=lambda owner=owner: owner.has_room)  # type: ignore[misc]
        for owner in turn(scheduler, chance):
            done += 1
            assert owner.generated == owner.length == sum(owner.packets)
            whole = [packet_frames(sequence) for sequence in range(len(owner.packets))]
            assert owner.packets[:-1] == whole[:-1]
            assert 1 <= owner.packets[-1] <= whole[-1]
            assert owner.final == [False] * (len(owner.packets) - 1) + [True]
        assert all(track.pending <= packet_frames(track.packets) for track in scheduler.tracks)
        if not scheduler.tracks and not waiting:
            break
    assert done == len(requests)
