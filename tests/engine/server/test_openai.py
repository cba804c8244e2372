"""The OpenAI-shaped endpoint, driven by the official client and by hand."""

from __future__ import annotations

import base64
import io
import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import openai
import pytest
import soundfile

from engine.contract import SpeechRequest
from engine.server.encoders import available
from tests.engine.server.client import request_bytes
from tests.engine.server.conftest import Running, StartServer, eventually
from tests.engine.server.fake_engine import FakeEngine, FakeStream, speech_pcm

PATH = "/v1/audio/speech"
MODEL = "assay-fake"


def client_of(server: Running) -> openai.OpenAI:
    host, port = server.address
    return openai.OpenAI(api_key="unused", base_url=f"http://{host}:{port}/v1", max_retries=0)


def create(server: Running, **fields: Any) -> Any:
    given = {"model": MODEL, "voice": "A calm voice.", "input": "Hi frames=30", "extra_body": {"seed": 4}, **fields}
    with client_of(server) as client:
        return client.audio.speech.create(**given)


def decoded(data: bytes) -> np.ndarray[Any, Any]:
    samples, rate = soundfile.read(io.BytesIO(data), dtype="int16")
    assert rate == 24_000
    return np.asarray(samples)


def test_plain_formats(shared_server: Running) -> None:
    pcm = speech_pcm(4, 30)
    assert create(shared_server, response_format="pcm").content == pcm
    wav = create(shared_server, response_format="wav").content
    assert wav[44:] == pcm
    assert len(wav) == int.from_bytes(wav[4:8], "little") + 8
    assert decoded(create(shared_server, response_format="flac").content).tobytes() == pcm
    for name in ("mp3", "opus"):
        samples = decoded(create(shared_server, response_format=name).content)
        assert 30 * 1920 <= len(samples) <= 30 * 1920 + 4_000, name


def test_streamed_flac_is_whole_once_its_length_is_filled_in(shared_server: Running) -> None:
    data = bytearray(create(shared_server, response_format="flac", extra_body={"stream": True, "seed": 4}).content)
    assert data[22:26] == bytes(4), "a stream cannot know its length"
    data[22:26] = (30 * 1920).to_bytes(4, "big")
    assert decoded(bytes(data)).tobytes() == speech_pcm(4, 30)


def test_default_is_mp3(shared_server: Running) -> None:
    answer = create(shared_server)
    assert answer.response.headers["content-type"] == "audio/mpeg"
    assert answer.response.headers["x-qwen3-seed"] == "4"
    assert len(decoded(answer.content)) >= 30 * 1920


def test_streaming_by_the_official_client(start_server: StartServer) -> None:
    server = start_server(FakeEngine(frame_seconds=0.005))
    with client_of(server) as client:
        for name in ("pcm", "flac", "mp3", "opus"):
            with client.audio.speech.with_streaming_response.create(
                model=MODEL,
                voice="alloy",
                instructions="Calm.",
                input="frames=60",
                response_format=name,
                extra_body={"stream": True},
            ) as answer:
                assert answer.headers.get("transfer-encoding") == "chunked"
                pieces = list(answer.iter_bytes())
            assert len(pieces) > 3, name


def test_first_bytes_leave_before_generation_ends(start_server: StartServer) -> None:
    engine = FakeEngine(frame_seconds=0.02)
    server = start_server(engine)
    body = {"model": MODEL, "voice": "Calm.", "input": "frames=100", "stream": True}
    for name in ("pcm", "flac", "mp3"):
        wire = server.ask(request_bytes("POST", PATH, json.dumps({**body, "response_format": name}).encode()))
        assert wire.status == 200
        wire.socket.recv(1, 2)  # peek: the first chunk is there
        assert max(engine.steps_of.values()) < 100
        wire.socket.close()
        eventually(lambda: engine.active_requests == 0)
        engine.steps_of.clear()


def test_events(shared_server: Running) -> None:
    body = {
        "model": MODEL,
        "voice": "Calm.",
        "input": "frames=9",
        "seed": 4,
        "response_format": "pcm",
        "stream_format": "sse",
    }
    wire = shared_server.ask(request_bytes("POST", PATH, json.dumps(body).encode()))
    assert wire.headers["content-type"] == "text/event-stream"
    events = [json.loads(line.removeprefix("data: ")) for line in wire.whole().decode().split("\n\n") if line]
    *deltas, done = events
    assert b"".join(base64.b64decode(delta["audio"]) for delta in deltas) == speech_pcm(4, 9)
    assert {delta["type"] for delta in deltas} == {"speech.audio.delta"}
    assert (done["type"], done["finish_reason"]) == ("speech.audio.done", "stop")


def test_events_tell_a_failure(shared_server: Running) -> None:
    body = {"model": MODEL, "voice": "Calm.", "input": "frames=30 fail_at=6", "stream_format": "sse"}
    wire = shared_server.ask(request_bytes("POST", PATH, json.dumps(body).encode()))
    last = json.loads(wire.whole().decode().strip().rsplit("data: ", 1)[1])
    assert (last["type"], last["error"]["code"]) == ("error", "internal_error")


def test_a_stream_that_fails_is_left_broken(start_server: StartServer) -> None:
    server = start_server()
    body = {"model": MODEL, "voice": "Calm.", "input": "frames=30 fail_at=6", "response_format": "pcm"}
    wire = server.ask(request_bytes("POST", PATH, json.dumps(body).encode()))
    assert wire.status == 200
    with pytest.raises(EOFError):
        wire.whole()
    with pytest.raises(openai.APIConnectionError):
        create(server, input="frames=30 fail_at=6", response_format="pcm")
    with pytest.raises(openai.InternalServerError):
        create(server, input="frames=30 fail_at=0", response_format="pcm")


REFUSALS: list[tuple[dict[str, Any], str]] = [
    ({"model": "tts-1"}, "unsupported_model"),
    ({"speed": 1.5}, "unsupported_speed"),
    ({"voice": "alloy"}, "invalid_voice_description"),
    ({"voice": ""}, "invalid_voice_description"),
    ({"voice": {"id": "voice_1"}}, "invalid_voice_description"),
    ({"input": " "}, "invalid_text"),
    ({"response_format": "aac"}, "unsupported_response_format"),
    ({"stream_format": "websocket"}, "unsupported_response_format"),
    ({"extra_body": {"stream": True}, "response_format": "wav"}, "unsupported_response_format"),
    ({"stream_format": "sse", "response_format": "wav"}, "unsupported_response_format"),
    ({"stream_format": "sse", "extra_body": {"stream": False}}, "unsupported_response_format"),
    ({"extra_body": {"max_duration_seconds": 500}}, "invalid_max_duration"),
]


@pytest.mark.parametrize(("fields", "code"), REFUSALS)
def test_refusals_reach_the_client_as_its_own_errors(shared_server: Running, fields: dict[str, Any], code: str) -> None:
    with pytest.raises(openai.UnprocessableEntityError) as caught:
        create(shared_server, **fields)
    assert caught.value.code == code
    assert caught.value.type == "invalid_request_error"
    assert caught.value.message


def test_unknown_fields_and_overload(start_server: StartServer) -> None:
    server = start_server(FakeEngine(slots=1, frame_seconds=0.05))
    with pytest.raises(openai.BadRequestError):
        create(server, extra_body={"voice_clone": True})
    body = {"model": MODEL, "voice": "Calm.", "input": "frames=1000"}
    busy = server.ask(request_bytes("POST", PATH, json.dumps(body).encode()))
    with pytest.raises(openai.RateLimitError) as caught:
        create(server)
    assert caught.value.response.headers["retry-after"] == "1"
    busy.socket.close()


def test_buffered_answers_state_their_length(shared_server: Running) -> None:
    for name in ("pcm", "flac", "mp3", "opus", "wav"):
        answer = create(shared_server, response_format=name, extra_body={"stream": False, "seed": 4})
        assert int(answer.response.headers["content-length"]) == len(answer.content)
        assert answer.response.headers["x-finish-reason"] == "stop"


def test_aliases_and_models(start_server: StartServer) -> None:
    server = start_server(model_aliases="tts-1, gpt-4o-mini-tts")
    with client_of(server) as client:
        assert [model.id for model in client.models.list()] == [MODEL, "tts-1", "gpt-4o-mini-tts"]
    assert create(server, model="tts-1", response_format="pcm").content == speech_pcm(4, 30)


def test_voice_and_instructions_are_both_heard(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine()
    seen: list[str] = []
    submit = engine.submit

    def note(request: SpeechRequest) -> FakeStream:
        seen.append(request.voice_description)
        return submit(request)

    monkeypatch.setattr(engine, "submit", note)
    server = start_server(engine)
    create(server, voice="An old man.", instructions="Whisper.")
    create(server, voice="Alloy", instructions="Whisper.")
    assert seen == ["An old man.\nWhisper.", "Whisper."]


@pytest.fixture
def no_libsndfile(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "soundfile", None)
    available.cache_clear()
    yield
    available.cache_clear()


@pytest.mark.usefixtures("no_libsndfile")
def test_without_libsndfile_pcm_and_wav_remain_and_the_document_says_so(start_server: StartServer) -> None:
    server = start_server()
    pcm = speech_pcm(4, 30)
    assert create(server, response_format="pcm").content == pcm
    assert create(server, response_format="wav").content[44:] == pcm
    for fields in ({}, {"response_format": "mp3"}, {"response_format": "flac"}, {"response_format": "opus"}):
        with pytest.raises(openai.UnprocessableEntityError) as refusal:
            create(server, **fields)
        assert refusal.value.code == "unsupported_response_format"
        assert "ask for response_format pcm, wav" in refusal.value.message
    assert server.engine.counters.rows_advanced == 60  # nothing was spoken for what could not be written
    document = server.ask(request_bytes("GET", "/openapi.json")).document()
    body = document["components"]["schemas"]["OpenAISpeechBody"]
    assert body["properties"]["response_format"]["enum"] == ["pcm", "wav"]
    assert "response_format" in body["required"]
    answer = document["paths"][PATH]["post"]["responses"]["200"]["content"]
    assert "audio/wav" in answer
    assert not {"audio/mpeg", "audio/flac"} & set(answer)
