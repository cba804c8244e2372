"""Requests to the engine and what comes back, in a few words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from engine.contract import AudioPacket, Sampling, SpeechEnd, SpeechEvent, SpeechFailure, SpeechRequest, StageSampling
from engine.stream import BoundedStream

PATIENCE = 30.0  # seconds; only a broken engine needs them
GREEDY = Sampling(talker=StageSampling(strategy="greedy"), predictor=StageSampling(strategy="greedy"))


def speech(**changes: Any) -> SpeechRequest:
    """A short request; every field may be changed."""
    values: dict[str, Any] = {
        "request_id": uuid4(), "text": "Hello there.", "voice_description": "Calm.", "seed": 1, "max_frames": 8,
    }  # fmt: skip
    return SpeechRequest(**{**values, **changes})


def drain(stream: BoundedStream) -> list[SpeechEvent]:
    """Every event up to the terminal one."""
    events: list[SpeechEvent] = []
    while not events or isinstance(events[-1], AudioPacket):
        event = stream.take(timeout=PATIENCE)
        assert event is not None, f"no event within {PATIENCE} s after {len(events)} events"
        events.append(event)
    return events


def audio(events: Sequence[SpeechEvent]) -> list[AudioPacket]:
    return [event for event in events if isinstance(event, AudioPacket)]


def pcm(events: Sequence[SpeechEvent]) -> bytes:
    return b"".join(packet.pcm for packet in audio(events))


def ending(events: Sequence[SpeechEvent]) -> SpeechEnd:
    """The terminal event of a successful request."""
    last = events[-1]
    assert isinstance(last, SpeechEnd), last
    return last


def failure(events: Sequence[SpeechEvent]) -> SpeechFailure:
    """The terminal event of an unsuccessful request."""
    last = events[-1]
    assert isinstance(last, SpeechFailure), last
    return last
