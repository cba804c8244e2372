"""A real process over real sockets: torn, slow, flooding and overlapping clients."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import time
from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.engine.server.client import SPEECH, Wire, request_bytes, speech_body, speech_bytes
from tests.engine.server.conftest import Process, StartProcess, eventually, processes

LIVE = request_bytes("GET", "/health/live")
ACTIVE = "assay_active_requests"


def closed_within(wire: Wire, seconds: float) -> bool:
    """True once the server has closed the connection; whatever it still sends is read away."""
    wire.socket.settimeout(seconds)
    with contextlib.suppress(ConnectionResetError):
        try:
            while wire.socket.recv(65_536):
                pass
        except TimeoutError:
            return False
    return True


def reset(wire: Wire) -> None:
    """Close with RST instead of FIN."""
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.socket.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """One process for the whole file: it must survive every test."""
    with processes(tmp_path_factory.mktemp("faults")) as start:
        yield start("--request-read-seconds", "1", "--keep-alive-seconds", "1.5", "--frame-seconds", "0.005")


def works(server: Process) -> bool:
    """The server still serves, and holds no slot once it is quiet."""
    with server.wire() as wire:
        ended = list(wire.ask(speech_bytes()).parts())[-1].document["type"] == "end"
    eventually(lambda: server.metric(ACTIVE) == 0)
    return ended and server.process.poll() is None


def test_torn_connections(server: Process) -> None:
    before = server.metric('assay_cancelled_total{cause="disconnected"}')
    whole = speech_bytes("frames=400")
    for cut in (0, 1, 20, len(whole) // 2, len(whole) - 1):
        for end in (reset, lambda wire: wire.socket.close()):
            end(server.wire().send(whole[:cut]))
    for end in (reset, lambda wire: wire.socket.close()):
        wire = server.wire().ask(whole)
        next(wire.parts())
        end(wire)
    assert works(server)
    assert server.metric('assay_cancelled_total{cause="disconnected"}') == before + 2


def test_half_sent_body_is_refused_in_time(server: Process) -> None:
    whole = speech_bytes()
    start = time.perf_counter()
    wire = server.wire().send(whole[:-5]).answer()
    assert (wire.status, wire.document()["code"]) == (408, "request_timeout")
    assert 0.8 < time.perf_counter() - start < 3
    assert works(server)


def test_slow_loris_in_headers_and_body(server: Process) -> None:
    whole = speech_bytes()
    for head in (b"", whole[: whole.index(b"\r\n\r\n") + 4]):
        wire = server.wire().send(head)
        start, rest = time.perf_counter(), iter(whole[len(head) :])
        with contextlib.suppress(ConnectionError):
            while time.perf_counter() - start < 5 and not closed_within(wire, 0.1):
                wire.send(bytes([next(rest)]))
        assert 0.8 < time.perf_counter() - start < 4.9 or not head
    assert works(server)


def test_silent_connection_is_closed(server: Process) -> None:
    start = time.perf_counter()
    assert closed_within(server.wire(), 5)
    assert time.perf_counter() - start > 1


def test_idle_keep_alive_is_closed(server: Process) -> None:
    wire = server.wire()
    assert wire.ask(LIVE).document() == {"status": "live"}
    time.sleep(0.5)
    assert wire.ask(LIVE).document() == {"status": "live"}
    assert closed_within(wire, 5)


def test_header_flood(server: Process) -> None:
    many = {f"X-Flood-{number}": "x" * 100 for number in range(1_000)}
    for headers in (many, {"X-Flood": "x" * 100_000}):
        wire = server.wire()
        with contextlib.suppress(ConnectionError):
            wire.send(request_bytes("GET", "/health/live", headers=headers))
        with contextlib.suppress(ConnectionError, EOFError):
            assert wire.answer().status == 431
            assert wire.document()["code"] == "headers_too_large"
    endless = server.wire()
    with contextlib.suppress(ConnectionError):
        endless.send(b"GET / HTTP/1.1\r\nX: ")
        for _ in range(2_000):
            endless.send(b"y" * 10_000)
    assert closed_within(endless, 5)
    assert works(server)


def test_rubbish_is_a_problem_document(server: Process) -> None:
    for rubbish in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"):
        wire = server.wire().send(rubbish).answer()
        assert wire.status == 400
        assert wire.document()["code"] == "malformed_request"
    assert works(server)


def test_conflicting_framing_is_refused(server: Process) -> None:
    smuggled = (
        b"POST /v1/voice-design/speech HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        b"Content-Length: 4\r\nContent-Length: 5\r\n\r\n{}  "
    )
    assert server.wire().send(smuggled).answer().status == 400
    body = json.dumps(speech_body()).encode()
    both = CHUNKED_HEAD.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\n") + chunked(body, 7)
    wire = server.wire().send(both).answer()
    assert (wire.status, wire.document()["code"], wire.headers["connection"]) == (400, "malformed_request", "close")
    assert closed_within(wire, 1)
    assert works(server)


def chunked(body: bytes, size: int) -> bytes:
    pieces = [body[first : first + size] for first in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


CHUNKED_HEAD = (
    b"POST /v1/voice-design/speech HTTP/1.1\r\nHost: a\r\n"
    b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)


def test_chunked_upload(server: Process) -> None:
    body = json.dumps(speech_body()).encode()
    wire = server.wire()
    for size in (1, 7, len(body)):
        assert list(wire.ask(CHUNKED_HEAD + chunked(body, size)).parts())[-1].document["type"] == "end"


def test_broken_chunks_are_refused(server: Process) -> None:
    for broken in (b"zz\r\n", b'5\r\n{"texXX'):
        wire = server.wire().send(CHUNKED_HEAD + broken).answer()
        assert (wire.status, wire.document()["code"]) == (400, "malformed_request")
        assert closed_within(wire, 1)
    assert works(server)


def test_endless_chunked_upload_is_cut(server: Process) -> None:
    wire = server.wire().send(CHUNKED_HEAD)
    piece = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    sent = 0
    with contextlib.suppress(ConnectionError):
        while sent < 64 * 1024 * 1024:
            wire.send(piece)
            sent += len(piece)
    assert sent < 32 * 1024 * 1024
    assert works(server)


def test_too_large_is_answered_while_the_client_still_sends(server: Process) -> None:
    wire = server.wire().send(CHUNKED_HEAD + b"10000\r\n" + b" " * 65_536 + b"\r\n")
    assert (wire.answer().status, wire.document()["code"]) == (413, "request_too_large")


def test_pipelined_requests_are_answered_in_order(server: Process) -> None:
    ids = [str(uuid4()) for _ in range(4)]
    wire = server.wire().send(b"".join(speech_bytes("frames=3", {"X-Request-Id": request_id}) for request_id in ids))
    for request_id in ids:
        assert list(wire.answer().parts())[-1].document["request_id"] == request_id
    assert works(server)


def test_rubbish_behind_a_request_ends_the_connection_only(server: Process) -> None:
    wire = server.wire().send(speech_bytes("frames=200") + b"\x00\x01\x02 rubbish\r\n\r\n")
    assert closed_within(wire, 10)
    assert works(server)


def test_disconnect_behind_a_pipelined_request_frees_the_slot(server: Process) -> None:
    wire = server.wire().send(speech_bytes("frames=1400") * 3).answer()
    next(wire.parts())
    reset(wire)
    eventually(lambda: server.metric(ACTIVE) == 0)
    assert works(server)


def test_expect_continue(server: Process) -> None:
    body = json.dumps(speech_body()).encode()
    head = request_bytes("POST", SPEECH, body, {"Expect": "100-continue"})[: -len(body)]
    wire = server.wire().send(head).answer()
    assert wire.status == 100
    assert wire.send(body).answer().status == 200


def test_http_1_0_is_answered(server: Process) -> None:
    wire = server.wire().send(speech_bytes("frames=3").replace(b"HTTP/1.1", b"HTTP/1.0"))
    data = b""
    while piece := wire.socket.recv(65_536):
        data += piece
    assert data.startswith(b"HTTP/1.1 200")
    assert b'"type":"end"' in data


def test_slow_reader_at_the_default_five_seconds(start_process: StartProcess) -> None:
    server = start_process("--slots", "1")
    start = time.perf_counter()
    server.wire(receive_buffer=4_096).send(speech_bytes("frames=1400"))
    eventually(lambda: server.metric(ACTIVE) == 1)
    eventually(lambda: server.metric(ACTIVE) == 0, 10)
    assert 4.9 < time.perf_counter() - start < 7
    assert server.metric('assay_cancelled_total{cause="slow_reader"}') == 1
    assert works(server)


def test_log_has_no_content(server: Process) -> None:
    secret = "the-secret-words"
    request_id = str(uuid4())
    server.ask(speech_bytes(f"{secret} frames=3", {"X-Request-Id": request_id}, voice_description=secret)).whole()
    server.ask(speech_bytes(f"{secret} fail_at=1")).whole()
    server.ask(speech_bytes(secret, language=secret)).whole()
    server.ask(request_bytes("GET", f"/{secret}?{secret}", headers={"X": secret})).whole()
    server.wire().send(f"{secret}\r\n\r\n".encode()).answer()
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    assert sum(line["event"] == "request" for line in lines) >= 4
    assert secret not in server.log.read_text()
    with server.wire() as wire:
        metrics = wire.ask(request_bytes("GET", "/metrics")).whole().decode()
    assert secret not in metrics
    assert request_id not in metrics
    assert any(line.get("request_id") == request_id for line in lines), "the log tells which request it was"
