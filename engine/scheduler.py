"""Who steps, who waits, which packet is due. Plain Python: no tensors, no clock, no threads.

Requests occupy rows 0..n-1 in lockstep. A row advances until it has a packet's worth of frames that its reader has
not made room for; then it is parked, and only it. First packets are decoded before any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from engine.contract import FIRST_PACKET_FRAMES, LATER_PACKET_FRAMES, StopReason

Owner = TypeVar("Owner")
# Growing so slowly that playback of what was sent lasts until the next packet is there.
PACKET_RAMP = (
    FIRST_PACKET_FRAMES,
    1,
    2,
    LATER_PACKET_FRAMES,
)


def packet_frames(sequence: int) -> int:
    """Frames of the packet with this sequence number, unless the utterance ends within it."""
    return PACKET_RAMP[min(sequence, len(PACKET_RAMP) - 1)]


@dataclass(kw_only=True)
class Track(Generic[Owner]):
    """One request on a row."""

    owner: Owner
    max_frames: int
    has_room: Callable[[], bool]
    frames: int = 0  # complete
    emitted: int = 0  # of these, handed over
    packets: int = 0
    stop: StopReason | None = None

    @property
    def pending(self) -> int:
        return self.frames - self.emitted

    @property
    def packet_ready(self) -> bool:
        return self.pending > 0 and (self.stop is not None or self.pending >= packet_frames(self.packets))

    @property
    def delivered(self) -> bool:
        """Stopped, and every frame has been handed over."""
        return self.stop is not None and self.pending == 0


@dataclass(frozen=True, kw_only=True)
class PacketJob:
    """Rows whose next packet has the same number of frames and can be decoded together."""

    rows: tuple[int, ...]
    frames: int


@dataclass(kw_only=True)
class Scheduler(Generic[Owner]):
    """Rows and their tracks, for at most `capacity` requests."""

    capacity: int
    tracks: list[Track[Owner]] = field(default_factory=list)

    def admit(self, owner: Owner, *, max_frames: int, has_room: Callable[[], bool]) -> int:
        """Place a request on the next row and return it."""
        assert len(self.tracks) < self.capacity, "admission must respect the capacity"
        self.tracks.append(Track(owner=owner, max_frames=max_frames, has_room=has_room))
        return len(self.tracks) - 1

    def release(self, row: int) -> int | None:
        """Free a row. Returns the row whose request must move here, or None when it was the last."""
        last = len(self.tracks) - 1
        moved = self.tracks.pop()
        if row == last:
            return None
        self.tracks[row] = moved
        return last

    def advancing(self) -> list[bool]:
        """For each row up to the last one that steps: whether it advances. Empty when none does."""
        flags = [track.stop is None and not track.packet_ready for track in self.tracks]
        while flags and not flags[-1]:
            flags.pop()
        return flags

    def commit(self, advance: Sequence[bool], ended: Sequence[bool]) -> None:
        """Record a step: which rows advanced, and which of them drew end of speech."""
        for track, advanced, natural in zip(self.tracks, advance, ended, strict=False):
            if not advanced:
                continue
            track.frames += 1
            if natural:
                track.stop = StopReason.EOS
            elif track.frames == track.max_frames:
                track.stop = StopReason.MAX_FRAMES

    def due(self) -> list[PacketJob]:
        """Packets that can be decoded and handed over now, first packets of an utterance before all others."""
        groups: dict[tuple[bool, int], list[int]] = {}
        for row, track in enumerate(self.tracks):
            if track.packet_ready and track.has_room():
                size = min(track.pending, packet_frames(track.packets))
                groups.setdefault((track.packets > 0, size), []).append(row)
        return [PacketJob(rows=tuple(rows), frames=size) for (_, size), rows in sorted(groups.items())]
