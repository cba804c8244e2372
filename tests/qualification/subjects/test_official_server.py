"""The adapter of the official package in front of a scripted speaker, driven by the harness's own client."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest

from qualification.bench.client import Observation, SpeechCall, open_for_speech, speak
from qualification.bench.clock import Clock
from qualification.bench.connection import Connection, Deadlines
from qualification.bench.raw import RequestOutcome
from qualification.bench.target import Target
from qualification.capabilities import ask_capabilities, readiness
from qualification.digest import sha256_bytes
from qualification.subjects.buffered_answer import FRAME_BYTES, stream_body
from qualification.subjects.official_server import Server


@dataclass(frozen=True, kw_only=True)
class Said:
    pcm: bytes
    ended: bool


@dataclass
class ScriptedSpeaker:
    """`frames` None: it does not end by itself and fills what it is given."""

    frames: int | None = 6
    seconds: float = 0.0
    heard: list[dict[str, Any]] = field(default_factory=list)
    active: int = 0
    most: int = 0

    def speak(
        self, *, text: str, instruction: str, language: str, seed: int, frames: int, arguments: Mapping[str, Any]
    ) -> Said:
        if text == "fail":
            raise RuntimeError("broken")
        self.active += 1
        self.most = max(self.most, self.active)
        time.sleep(self.seconds)
        self.heard.append({"language": language, "seed": seed, "frames": frames, **arguments})
        self.active -= 1
        count = min(frames, self.frames or frames)
        return Said(pcm=bytes([seed % 251, 1]) * (count * FRAME_BYTES // 2), ended=self.frames is not None)


@pytest.fixture
def speaker() -> ScriptedSpeaker:
    return ScriptedSpeaker()


@pytest.fixture
def target(speaker: ScriptedSpeaker) -> Iterator[Target]:
    server = Server(("127.0.0.1", 0), speaker, precision="fp32", device="cpu")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield Target(host="127.0.0.1", port=server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def call(**changes: Any) -> SpeechCall:
    values: dict[str, Any] = {
        "request_id": str(uuid4()), "text": "One.", "voice_description": "Calm.", "language": "english", "seed": 7,
        "max_duration_seconds": 1.0, "sampling": {},
    }  # fmt: skip
    return SpeechCall(**{**values, **changes})


async def _spoken(target: Target, asked: SpeechCall) -> Observation:
    clock = Clock()
    opened = await open_for_speech(target, clock, Deadlines())
    return await speak(opened, asked, clock) if isinstance(opened, Connection) else opened


def spoken(target: Target, *asked: SpeechCall) -> list[Observation]:
    async def together() -> list[Observation]:
        return list(await asyncio.gather(*(_spoken(target, item) for item in asked)))

    return asyncio.run(together())


def test_the_harness_takes_it_for_a_subject(target: Target) -> None:
    said = ask_capabilities(target, Clock())
    assert readiness(target, Clock()) == "ready"
    assert (said.model, said.precision, said.device) == ("official/qwen-tts-0.1.1", "fp32", "cpu")


def test_a_whole_utterance_keeps_every_rule_of_the_stream(target: Target, speaker: ScriptedSpeaker) -> None:
    seen = spoken(target, call())[0]
    assert seen.outcome is RequestOutcome.OK, seen.error_detail
    assert [packet.frames for packet in seen.packets] == [1, 4, 1]
    assert seen.finish_reason == "stop"
    assert seen.pcm_sha256 == sha256_bytes(bytes([7, 1]) * (6 * FRAME_BYTES // 2))
    assert speaker.heard[0]["frames"] == 13
    assert speaker.heard[0]["do_sample"] is True


def test_the_ceiling_is_no_natural_end(target: Target, speaker: ScriptedSpeaker) -> None:
    speaker.frames = None
    seen = spoken(target, call())[0]
    assert (seen.finish_reason, seen.samples) == ("length", 13 * 1_920)


def test_one_request_is_spoken_at_a_time_and_the_others_wait(target: Target, speaker: ScriptedSpeaker) -> None:
    speaker.seconds = 0.05
    seen = spoken(target, *(call(seed=seed) for seed in range(3)))
    assert [item.outcome for item in seen] == [RequestOutcome.OK] * 3
    assert speaker.most == 1


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"text": " "}, "invalid_text"),
        ({"voice_description": ""}, "invalid_voice_description"),
        ({"language": "latin"}, "unsupported_language"),
        ({"max_duration_seconds": 500.0}, "invalid_max_duration"),
        ({"sampling": {"strategy": "greedy", "top_k": 5}}, "invalid_sampling"),
        ({"text": "fail"}, "internal_error"),
    ],
)
def test_refusals_have_a_name_and_the_next_request_works(target: Target, changes: dict[str, Any], code: str) -> None:
    refused = spoken(target, call(**changes))[0]
    assert (refused.outcome, refused.error_code) == (RequestOutcome.REFUSED, code)
    assert spoken(target, call())[0].outcome is RequestOutcome.OK


@pytest.mark.parametrize("pcm", [b"", b"\0" * (FRAME_BYTES + 2)])
def test_half_a_frame_is_no_answer(pcm: bytes) -> None:
    with pytest.raises(ValueError, match="whole number of codec frames"):
        stream_body(request_id="x", model="m", seed=1, pcm=pcm, ended=True, wall_microseconds=1)
