"""The hand-over holds one packet, wakes its listener and survives a listener that breaks."""

from __future__ import annotations

import threading
import time
from uuid import UUID

import pytest

from engine.contract import AudioPacket, SpeechFailure, StopReason
from engine.stream import BoundedStream
from tests.engine.speech import PATIENCE


def packet(sequence: int = 0) -> AudioPacket:
    return AudioPacket(sequence=sequence, first_frame=sequence, frames=1, pcm=b"\0" * 3_840, final=False)


END = SpeechFailure(reason=StopReason.CANCELLED, code="request_cancelled", detail="the request was cancelled")


@pytest.fixture
def taken() -> list[int]:
    return []


@pytest.fixture
def stream(taken: list[int]) -> BoundedStream:
    return BoundedStream(UUID(int=7), lambda: taken.append(1))


def test_it_carries_its_request_id(stream: BoundedStream) -> None:
    assert stream.request_id == UUID(int=7)


def test_one_packet_fills_it_and_taking_makes_room_and_tells_the_engine(
    stream: BoundedStream, taken: list[int]
) -> None:
    assert stream.has_room
    stream.offer(packet())
    assert not stream.has_room
    assert stream.take(timeout=0) == packet()
    assert stream.has_room
    assert taken == [1]


def test_a_packet_without_room_is_our_own_bug(stream: BoundedStream) -> None:
    stream.offer(packet())
    with pytest.raises(AssertionError, match="without room"):
        stream.offer(packet(1))


def test_the_terminal_event_fits_beside_an_undelivered_packet_and_comes_after_it(stream: BoundedStream) -> None:
    stream.offer(packet())
    stream.finish(END)
    assert [stream.take(timeout=0), stream.take(timeout=0)] == [packet(), END]


@pytest.mark.parametrize("taken_first", [True, False])
def test_nothing_comes_after_the_terminal_event(stream: BoundedStream, taken_first: bool) -> None:
    """An engine that was given up may still bring a packet and an end of its own."""
    stream.finish(END)
    events = [stream.take(timeout=0)] if taken_first else []
    stream.offer(packet())
    stream.finish(SpeechFailure(reason=StopReason.FAILED, code="internal_error", detail="too late"))
    while (event := stream.take(timeout=0)) is not None:
        events.append(event)
    assert events == [END]


def test_taking_from_an_empty_stream_gives_nothing_after_the_timeout(stream: BoundedStream, taken: list[int]) -> None:
    started = time.monotonic()
    assert stream.take(timeout=0.05) is None
    assert time.monotonic() - started >= 0.05
    assert taken == []


def test_a_waiting_taker_is_woken_by_an_offer(stream: BoundedStream) -> None:
    found: list[object] = []
    taker = threading.Thread(target=lambda: found.append(stream.take(timeout=PATIENCE)))
    taker.start()
    stream.offer(packet())
    taker.join(PATIENCE)
    assert found == [packet()]


def test_notify_rings_for_every_event_and_at_once_for_one_that_waits(stream: BoundedStream) -> None:
    rings: list[int] = []
    stream.offer(packet())
    stream.notify(lambda: rings.append(1))
    assert len(rings) == 1
    stream.take(timeout=0)
    stream.offer(packet(1))
    stream.finish(END)
    assert len(rings) == 3


def test_a_listener_that_raises_harms_nobody(stream: BoundedStream, caplog: pytest.LogCaptureFixture) -> None:
    """A closed event loop raises from its wake-up; the engine's thread must not die of it."""

    def broken() -> None:
        raise RuntimeError("Event loop is closed")

    stream.notify(broken)
    stream.offer(packet())
    stream.finish(END)
    assert [stream.take(timeout=0), stream.take(timeout=0)] == [packet(), END]
    assert "listener" in caplog.text
