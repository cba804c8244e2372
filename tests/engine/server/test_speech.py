"""The voice-design endpoint against the wire contract."""

from __future__ import annotations

import json
import struct
import threading
from typing import Any
from uuid import UUID, uuid4

import pytest

from engine.contract import SAMPLES_PER_FRAME, SpeechRequest
from tests.engine.server.client import SPEECH, Part, request_bytes, speech_body, speech_bytes
from tests.engine.server.conftest import Running, StartServer, eventually
from tests.engine.server.fake_engine import FakeEngine, FakeStream, speech_pcm


def audio_of(parts: list[Part]) -> bytes:
    """PCM of the audio parts after checking every header for continuity."""
    frame, pcm = 0, b""
    for number, part in enumerate(parts):
        headers = part.headers
        assert headers["content-type"] == "audio/pcm;rate=24000;channels=1;format=s16le"
        frames = int(headers["x-codec-frames"])
        assert frames == 1 if number == 0 else 1 <= frames <= 4
        assert int(headers["x-sequence"]) == number
        assert int(headers["x-first-codec-frame"]) == frame
        assert int(headers["x-first-sample"]) == frame * SAMPLES_PER_FRAME
        assert int(headers["x-sample-count"]) == frames * SAMPLES_PER_FRAME == len(part.body) // 2
        assert headers["x-final"] == ("true" if number == len(parts) - 1 else "false")
        frame, pcm = frame + frames, pcm + part.body
    return pcm


def test_stream_has_start_audio_and_end(start_server: StartServer) -> None:
    request_id = uuid4()
    wire = start_server().ask(speech_bytes("frames=11", {"X-Request-Id": str(request_id).upper()}, seed=7))
    assert wire.status == 200
    assert wire.headers["cache-control"] == "no-store"
    assert wire.headers["x-accel-buffering"] == "no"
    assert wire.headers["x-qwen3-seed"] == "7"
    assert wire.headers["x-request-id"] == str(request_id)
    start, *audio, end = list(wire.parts())
    assert start.document == {
        "type": "start",
        "request_id": str(request_id),
        "model": "assay-fake",
        "seed": 7,
        "audio": {"encoding": "pcm_s16le", "sample_rate_hz": 24000, "channels": 1, "samples_per_codec_frame": 1920},
    }
    assert audio_of(audio) == speech_pcm(7, 11)
    assert end.document["type"] == "end"
    assert end.document["request_id"] == str(request_id)
    assert end.document["finish_reason"] == "stop"
    assert set(end.document["metrics"]) == {
        "queue_microseconds", "prefill_microseconds", "first_codec_frame_microseconds", "first_audio_microseconds",
        "wall_microseconds", "generated_codec_frames", "emitted_samples", "emitted_packets", "talker_gpu_microseconds",
        "codec_gpu_microseconds", "peak_request_device_bytes", "peak_request_host_bytes",
    }  # fmt: skip
    assert end.document["metrics"]["emitted_samples"] == 11 * 1920


def test_ceiling_is_reported_as_length(shared_server: Running) -> None:
    wire = shared_server.ask(speech_bytes("frames=50", max_duration_seconds=0.56))
    *audio, end = list(wire.parts())[1:]
    assert end.document["finish_reason"] == "length"
    assert len(audio_of(audio)) == 7 * SAMPLES_PER_FRAME * 2


def test_start_leaves_before_any_audio_and_audio_before_the_end(start_server: StartServer) -> None:
    gate = threading.Semaphore(0)
    engine = FakeEngine(gate=gate)
    wire = start_server(engine).ask(speech_bytes("frames=9"))
    parts = wire.parts()
    assert next(parts).document["type"] == "start"
    assert sum(engine.steps_of.values()) == 0
    gate.release()
    assert next(parts).is_audio
    assert sum(engine.steps_of.values()) == 1, "the first packet must leave while eight frames are still to be made"
    for _ in range(8):
        gate.release()
    assert [part.is_audio for part in parts] == [True, True, False]


def test_wav_has_exact_sizes(shared_server: Running) -> None:
    wire = shared_server.ask(speech_bytes("frames=40", stream=False, output_format="wav", seed=3))
    assert wire.status == 200
    assert wire.headers["content-type"] == "audio/wav"
    assert wire.headers["x-qwen3-seed"] == "3"
    assert wire.headers["x-finish-reason"] == "stop"
    assert UUID(wire.headers["x-request-id"]).version == 7
    body = wire.whole()
    assert len(body) == int(wire.headers["content-length"]) == 44 + 40 * 3840
    assert body[:4] + body[8:16] == b"RIFFWAVEfmt "
    assert struct.unpack("<I", body[4:8])[0] == len(body) - 8
    assert struct.unpack("<IHHIIHH", body[16:36]) == (16, 1, 1, 24000, 48000, 2, 16)
    assert body[36:40] == b"data"
    assert struct.unpack("<I", body[40:44])[0] == len(body) - 44
    assert body[44:] == speech_pcm(3, 40)


def test_seed_is_random_and_echoed_when_absent(shared_server: Running) -> None:
    seeds = set()
    for _ in range(2):
        wire = shared_server.ask(speech_bytes())
        start, *audio, _end = list(wire.parts())
        seed = start.document["seed"]
        assert wire.headers["x-qwen3-seed"] == str(seed)
        assert audio_of(audio) == speech_pcm(seed, 6)
        seeds.add(seed)
    assert len(seeds) == 2


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({}, "multipart/mixed"),
        ({"stream": True}, "multipart/mixed"),
        ({"output_format": "pcm_s16le"}, "multipart/mixed"),
        ({"stream": True, "output_format": "pcm_s16le"}, "multipart/mixed"),
        ({"stream": False}, "audio/wav"),
        ({"output_format": "wav"}, "audio/wav"),
        ({"stream": False, "output_format": "wav"}, "audio/wav"),
    ],
)
def test_format_is_inferred(shared_server: Running, fields: dict[str, Any], kind: str) -> None:
    wire = shared_server.ask(speech_bytes(**fields))
    assert wire.headers["content-type"].partition(";")[0] == kind


GREEDY = {"strategy": "greedy"}
REFUSALS: list[tuple[dict[str, Any], int, str]] = [
    ({"text": " \n\t "}, 422, "invalid_text"),
    ({"text": "a\0b"}, 422, "invalid_text"),
    ({"text": "é" * 16_385}, 422, "invalid_text"),
    ({"text": 5}, 422, "invalid_text"),
    ({"text": None}, 422, "invalid_text"),
    ({"voice_description": ""}, 422, "invalid_voice_description"),
    ({"voice_description": "a" * 4_097}, 422, "invalid_voice_description"),
    ({"voice_description": ["calm"]}, 422, "invalid_voice_description"),
    ({"language": "klingon"}, 422, "unsupported_language"),
    ({"language": "\u212aorean"}, 422, "unsupported_language"),  # the Kelvin sign, whose lower case is a k
    ({"language": 1}, 422, "unsupported_language"),
    ({"seed": -1}, 422, "invalid_seed"),
    ({"seed": 2**53}, 422, "invalid_seed"),
    ({"seed": 1.5}, 422, "invalid_seed"),
    ({"seed": True}, 422, "invalid_seed"),
    ({"seed": "1"}, 422, "invalid_seed"),
    ({"max_duration_seconds": 0.07}, 422, "invalid_max_duration"),
    ({"max_duration_seconds": 120.01}, 422, "invalid_max_duration"),
    ({"max_duration_seconds": "5"}, 422, "invalid_max_duration"),
    ({"max_duration_seconds": True}, 422, "invalid_max_duration"),
    ({"sampling": []}, 422, "invalid_sampling"),
    ({"sampling": {"strategy": "beam"}}, 422, "invalid_sampling"),
    ({"sampling": {"temperature": 0}}, 422, "invalid_sampling"),
    ({"sampling": {"temperature": 2.01}}, 422, "invalid_sampling"),
    ({"sampling": {"top_p": 0}}, 422, "invalid_sampling"),
    ({"sampling": {"top_p": 1.01}}, 422, "invalid_sampling"),
    ({"sampling": {"top_k": 3073}}, 422, "invalid_sampling"),
    ({"sampling": {"repetition_penalty": 0.09}}, 422, "invalid_sampling"),
    ({"sampling": {"predictor": {"top_k": 2049}}}, 422, "invalid_sampling"),
    ({"sampling": {**GREEDY, "temperature": 0.9}}, 422, "invalid_sampling"),
    ({"sampling": {**GREEDY, "top_p": 1.0}}, 422, "invalid_sampling"),
    ({"sampling": {**GREEDY, "top_k": 50}}, 422, "invalid_sampling"),
    ({"sampling": {"predictor": {**GREEDY, "top_k": 50}}}, 422, "invalid_sampling"),
    ({"stream": "yes"}, 422, "unsupported_response_format"),
    ({"output_format": "mp3"}, 422, "unsupported_response_format"),
    ({"stream": True, "output_format": "wav"}, 422, "unsupported_response_format"),
    ({"stream": False, "output_format": "pcm_s16le"}, 422, "unsupported_response_format"),
    ({"voice": "alloy"}, 400, "malformed_json"),
    ({"sampling": {"beams": 4}}, 400, "malformed_json"),
    ({"sampling": {"predictor": {"repetition_penalty": 1.0}}}, 400, "malformed_json"),
]


def test_refusals_carry_their_code(shared_server: Running) -> None:
    wire = shared_server.wire()
    for fields, status, code in REFUSALS:
        body = json.dumps({**speech_body(), **fields}, ensure_ascii=False).encode()
        found = wire.ask(request_bytes("POST", SPEECH, body))
        problem = found.document()
        assert (found.status, problem["code"]) == (status, code), fields
        assert found.headers["content-type"] == "application/problem+json"
        assert problem["type"].endswith(":" + code)
        assert problem["type"].startswith("urn:")
        assert problem["status"] == status
        assert problem["title"]
        assert problem["detail"]
        assert problem["request_id"] == found.headers["x-request-id"]


ACCEPTED: list[dict[str, Any]] = [
    {"text": "🙂"},
    {"text": "?!…"},
    {"text": "<|im_start|>assistant"},
    {"text": "a" * 32_768},
    {"voice_description": "é" * 2_048},
    {"language": "GerMan"},
    {"seed": 2**53 - 1},
    {"seed": 0},
    {"seed": 5.0},
    {"max_duration_seconds": 0.08},
    {"max_duration_seconds": 120},
    {"sampling": {**GREEDY, "repetition_penalty": 2, "predictor": GREEDY}},
    {"sampling": {"temperature": 0.01, "top_p": 1, "top_k": 0, "predictor": {"top_k": 2048}}},
]


def test_edges_are_accepted(shared_server: Running) -> None:
    wire = shared_server.wire()
    for fields in ACCEPTED:
        found = wire.ask(
            request_bytes("POST", SPEECH, json.dumps({**speech_body(), **fields}, ensure_ascii=False).encode())
        )
        assert found.status == 200, (fields, found.whole())
        assert list(found.parts())[-1].document["type"] == "end"


@pytest.mark.parametrize("value", ["", "17", "{" + str(uuid4()) + "}", uuid4().hex, str(uuid4()) + "0", "ü"])
def test_request_id_must_be_a_uuid(shared_server: Running, value: str) -> None:
    wire = shared_server.ask(speech_bytes(headers={"X-Request-Id": value}))
    assert (wire.status, wire.document()["code"]) == (400, "invalid_request_id")


def test_sampling_reaches_the_engine(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine()
    seen: list[Any] = []
    submit = engine.submit

    def note(request: SpeechRequest) -> FakeStream:
        seen.append(request)
        return submit(request)

    monkeypatch.setattr(engine, "submit", note)
    sampling = {"temperature": 0.5, "top_k": 7, "repetition_penalty": 1.5, "predictor": {"strategy": "greedy"}}
    start_server(engine).ask(speech_bytes(" Hi ", sampling=sampling, language="JAPANESE")).whole()
    (request,) = seen
    assert request.text == " Hi "
    assert request.language == "japanese"
    assert request.max_frames == 1500
    assert (request.sampling.talker.temperature, request.sampling.talker.top_k) == (0.5, 7)
    assert request.sampling.repetition_penalty == 1.5
    assert request.sampling.predictor.greedy


def test_failure_after_start_is_an_error_part(start_server: StartServer) -> None:
    server = start_server()
    wire = server.ask(speech_bytes("frames=20 fail_at=6"))
    start, *audio, error = list(wire.parts())
    assert wire.status == 200
    assert error.document == {
        "type": "error",
        "request_id": start.document["request_id"],
        "error": {"code": "internal_error", "detail": "the step failed"},
    }
    assert [part.headers["x-final"] for part in audio] == ["false", "false"]
    assert len(list(server.ask(speech_bytes()).parts())) == 5, "the next request must work"
    eventually(lambda: server.service.desk.active == 0)


def test_failure_of_a_buffered_request_is_a_problem(shared_server: Running) -> None:
    wire = shared_server.ask(speech_bytes("frames=20 oom_at=6", stream=False))
    assert (wire.status, wire.document()["code"]) == (500, "internal_error")
    assert shared_server.ask(speech_bytes(stream=False)).status == 200
