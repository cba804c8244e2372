"""More clients than slots: refused at once, with Retry-After, and those inside do not notice."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import struct
import threading
import time
from uuid import uuid4

import pytest

from engine.server.connection import Connection
from tests.engine.server.client import request_bytes, speech_bytes
from tests.engine.server.conftest import StartServer, eventually
from tests.engine.server.fake_engine import FakeEngine, speech_pcm


def test_beyond_the_slots_is_429_at_once(start_server: StartServer) -> None:
    gate = threading.Semaphore(0)
    engine = FakeEngine(slots=2, gate=gate)
    server = start_server(engine)
    inside = [server.ask(speech_bytes("frames=9", seed=seed)) for seed in (1, 2)]
    waits = []
    for _ in range(20):
        start = time.perf_counter()
        refused = server.ask(speech_bytes())
        waits.append(time.perf_counter() - start)
        assert (refused.status, refused.document()["code"]) == (429, "capacity_exhausted")
        assert int(refused.headers["retry-after"]) >= 1
    assert sorted(waits)[10] < 0.1
    for _ in range(9):
        gate.release()
    for seed, wire in zip((1, 2), inside, strict=True):
        parts = list(wire.parts())
        assert b"".join(part.body for part in parts if part.is_audio) == speech_pcm(seed, 9)
    gate.release(6)
    assert list(server.ask(speech_bytes()).parts())[-1].document["type"] == "end"


def test_a_refusal_waits_for_no_body(start_server: StartServer) -> None:
    """A full server answers once the headers are there, duplicate ids before the lack of a slot; the rest is read away."""
    server = start_server(FakeEngine(slots=1, gate=threading.Semaphore(0)))
    request_id = str(uuid4())
    inside = server.ask(speech_bytes("frames=9", {"X-Request-Id": request_id}))
    for headers, status, code in (
        ({}, 429, "capacity_exhausted"),
        ({"X-Request-Id": request_id}, 409, "request_id_in_use"),
        ({"X-Request-Id": "no"}, 400, "invalid_request_id"),
    ):
        whole = speech_bytes("frames=9", headers)
        head = whole.index(b"\r\n\r\n") + 4
        wire = server.wire().send(whole[:head]).answer()
        assert (wire.status, wire.document()["code"]) == (status, code)
        wire.send(whole[head:])
        assert wire.ask(request_bytes("GET", "/health/live")).document() == {"status": "live"}
    inside.socket.close()
    eventually(lambda: server.service.desk.active == 0)


def test_head_and_body_of_an_answer_leave_in_one_write(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server()
    writes: list[bytes] = []
    write = asyncio.selector_events._SelectorSocketTransport.write  # type: ignore[attr-defined]  # what the kernel is given

    def note(transport: object, data: bytes) -> None:
        writes.append(bytes(data))
        write(transport, data)

    monkeypatch.setattr("asyncio.selector_events._SelectorSocketTransport.write", note)
    server.ask(request_bytes("POST", "/v1/voice-design/speech", b"{")).whole()
    assert [data[:12] for data in writes] == [b"HTTP/1.1 400"]
    assert b"malformed_json" in writes.pop()
    server.ask(speech_bytes("frames=1")).whole()
    assert writes[0].startswith(b"HTTP/1.1 200")
    assert b'"type":"start"' in writes[0], "the start part must not wait for a round of its own"
    assert b"audio/pcm" not in writes[0]


def test_a_finished_client_can_ask_again_at_once(start_server: StartServer) -> None:
    """The slot is free before the end part arrives, for streams and for WAV."""
    wire = start_server(FakeEngine(slots=1)).wire()
    for number in range(60):
        answer = wire.ask(speech_bytes(stream=bool(number % 2)))
        assert answer.status == 200
        answer.whole()


def test_rate_limit_refuses_by_address(start_server: StartServer) -> None:
    server = start_server(requests_per_minute=3)
    statuses = [server.ask(speech_bytes(stream=False)).status for _ in range(4)]
    assert statuses == [200, 200, 200, 429]
    assert server.ask(request_bytes("GET", "/health/ready")).status == 200


def test_connections_beyond_the_limit_are_closed(start_server: StartServer) -> None:
    server = start_server(max_connections=3)
    first = [server.wire() for _ in range(3)]
    eventually(lambda: all(wire.ask(request_bytes("GET", "/health/live")).status == 200 for wire in first))
    extra = server.wire()
    with contextlib.suppress(ConnectionResetError):
        assert extra.socket.recv(1) == b""
    assert first[0].ask(request_bytes("GET", "/health/live")).status == 200


def test_reset_connections_leave_nothing_behind(start_server: StartServer) -> None:
    """A reset after a finished answer must not keep the connection alive through its keep-alive timer."""
    server = start_server()
    for _ in range(20):
        wire = server.wire()
        wire.ask(request_bytes("GET", "/health/live")).whole()
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        wire.socket.close()

    def left() -> int:
        gc.collect()
        return sum(type(found) is Connection for found in gc.get_objects())

    eventually(lambda: left() <= 1)
