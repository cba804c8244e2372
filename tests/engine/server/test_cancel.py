"""Cancellation by DELETE, disconnect and slow reading stops the engine within a frame; slots and order stay right."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID, uuid4

from engine.contract import SAMPLES_PER_FRAME
from tests.engine.server.client import Wire, request_bytes, speech_bytes
from tests.engine.server.conftest import Running, StartServer, eventually
from tests.engine.server.fake_engine import FakeEngine, speech_pcm

FRAME_SECONDS = 0.02
ENDLESS = "frames=1400"


def begin(server: Running, text: str = ENDLESS, **options: int) -> tuple[Wire, UUID]:
    """A stream that has had its first packet."""
    request_id = uuid4()
    wire = server.wire(**options).ask(speech_bytes(text, {"X-Request-Id": str(request_id)}))
    parts = wire.parts()
    next(parts)
    next(parts)
    return wire, request_id


def delete(server: Running, request_id: UUID) -> Wire:
    return server.ask(request_bytes("DELETE", f"/v1/requests/{request_id}"))


def steps_after(engine: FakeEngine, request_id: UUID, before: int) -> int:
    """Steps taken since `before`, once three more frames could have been made."""
    eventually(lambda: engine.active_requests == 0)
    time.sleep(3 * FRAME_SECONDS)
    return engine.steps_of[request_id] - before


def test_delete_stops_within_one_frame(start_server: StartServer) -> None:
    engine = FakeEngine(frame_seconds=FRAME_SECONDS)
    server = start_server(engine)
    wire, request_id = begin(server)
    before = engine.steps_of[request_id]
    answer = delete(server, request_id)
    assert answer.status == 202
    assert answer.document() == {"request_id": str(request_id), "status": "cancellation_requested"}
    assert answer.headers["x-request-id"] == str(request_id)
    last = list(wire.parts())[-1].document
    assert last["error"]["code"] == "request_cancelled"
    assert steps_after(engine, request_id, before) <= 1
    gone = delete(server, request_id)
    assert (gone.status, gone.document()["code"]) == (404, "request_not_found")


def test_delete_of_a_buffered_request_is_409(start_server: StartServer) -> None:
    engine = FakeEngine(frame_seconds=FRAME_SECONDS)
    server = start_server(engine)
    request_id = uuid4()
    wire = server.wire().send(speech_bytes(ENDLESS, {"X-Request-Id": str(request_id)}, stream=False))
    eventually(lambda: engine.steps_of.get(request_id))
    assert delete(server, request_id).status == 202
    assert (wire.answer().status, wire.document()["code"]) == (409, "request_cancelled")


def test_delete_needs_a_uuid(start_server: StartServer) -> None:
    answer = start_server().ask(request_bytes("DELETE", "/v1/requests/everything"))
    assert (answer.status, answer.document()["code"]) == (400, "invalid_request_id")


def test_disconnect_stops_within_one_frame(start_server: StartServer) -> None:
    engine = FakeEngine(frame_seconds=FRAME_SECONDS)
    server = start_server(engine)
    wire, request_id = begin(server)
    before = engine.steps_of[request_id]
    wire.socket.close()
    assert steps_after(engine, request_id, before) <= 1
    eventually(lambda: server.service.desk.active == 0)


def test_disconnect_of_a_buffered_request_stops_it(start_server: StartServer) -> None:
    engine = FakeEngine(frame_seconds=FRAME_SECONDS)
    server = start_server(engine)
    request_id = uuid4()
    wire = server.wire().send(speech_bytes(ENDLESS, {"X-Request-Id": str(request_id)}, stream=False))
    eventually(lambda: engine.steps_of.get(request_id))
    before = engine.steps_of[request_id]
    wire.socket.close()
    assert steps_after(engine, request_id, before) <= 1


def test_slow_reader_is_cut_and_its_slot_comes_back(start_server: StartServer) -> None:
    engine = FakeEngine(slots=1)
    server = start_server(engine, slow_reader_seconds=0.4)
    start = time.perf_counter()
    _wire, request_id = begin(server, receive_buffer=4_096)
    eventually(lambda: server.service.desk.active == 0)
    assert time.perf_counter() - start >= 0.4
    assert engine.steps_of[request_id] < 200, "the engine must not run ahead of a reader that takes nothing"
    assert list(server.ask(speech_bytes()).parts())[-1].document["type"] == "end"


def test_slow_reader_of_a_wav_is_cut(start_server: StartServer) -> None:
    engine = FakeEngine(slots=1)
    server = start_server(engine, slow_reader_seconds=0.4)
    wire = server.wire(receive_buffer=4_096).ask(speech_bytes(ENDLESS, stream=False))
    assert server.service.desk.active == 1, "the slot is held while megabytes wait for the reader"
    eventually(lambda: server.service.desk.active == 0)
    wire.socket.close()


def test_paused_reader_parks_the_engine_and_loses_nothing(start_server: StartServer) -> None:
    engine = FakeEngine()
    server = start_server(engine)
    request_id = uuid4()
    wire = server.wire(receive_buffer=4_096)
    wire.send(speech_bytes("frames=600", {"X-Request-Id": str(request_id)}, seed=5))
    eventually(lambda: engine.steps_of.get(request_id))
    time.sleep(0.3)
    parked = engine.steps_of[request_id]
    time.sleep(0.3)
    assert engine.steps_of[request_id] == parked < 200
    pcm = b"".join(part.body for part in wire.answer().parts() if part.is_audio)
    assert pcm == speech_pcm(5, 600)


def test_one_packet_is_ahead_of_the_socket(start_server: StartServer) -> None:
    """Without a reader the engine gets no further than one packet beyond what the server holds."""
    engine = FakeEngine()
    server = start_server(engine)
    wire, request_id = begin(server, receive_buffer=4_096)
    time.sleep(0.3)
    made = engine.steps_of[request_id] * SAMPLES_PER_FRAME * 2
    wire.socket.setblocking(False)
    taken = 0
    while True:  # everything the kernel holds on both sides, without waiting for more
        try:
            taken += len(wire.socket.recv(1 << 20))
        except BlockingIOError:
            break
    assert made - taken < 400_000


def test_duplicate_id_is_refused_while_live(start_server: StartServer) -> None:
    gate = threading.Semaphore(1)
    server = start_server(FakeEngine(gate=gate))
    wire, request_id = begin(server, "frames=2")
    again = server.ask(speech_bytes(headers={"X-Request-Id": str(request_id)}))
    assert (again.status, again.document()["code"]) == (409, "request_id_in_use")
    for _ in range(8):
        gate.release()
    assert list(wire.parts())[-1].document["type"] == "end"
    assert server.ask(speech_bytes("frames=2", {"X-Request-Id": str(request_id)})).status == 200


def test_three_ways_out_under_load_leave_the_others_alone(start_server: StartServer) -> None:
    """Every slot is busy; one client leaves, one is deleted, one stops reading: each stops, the rest are whole."""
    engine = FakeEngine(slots=6, frame_seconds=0.01)
    server = start_server(engine, slow_reader_seconds=0.4)

    def speak(seed: int) -> bytes:
        wire = server.ask(speech_bytes("frames=150", seed=seed))
        return b"".join(part.body for part in wire.parts() if part.is_audio)

    readers = ThreadPoolExecutor(3)
    healthy = [readers.submit(speak, seed) for seed in range(3)]
    (left, left_id), (deleted, deleted_id) = begin(server), begin(server)
    _slow, slow_id = begin(server, receive_buffer=4_096)
    before = {request_id: engine.steps_of[request_id] for request_id in (left_id, deleted_id)}
    left.socket.close()
    delete(server, deleted_id)
    assert list(deleted.parts())[-1].document["error"]["code"] == "request_cancelled"
    for seed, heard in enumerate(healthy):
        assert heard.result(20) == speech_pcm(seed, 150)
    readers.shutdown()
    eventually(lambda: engine.active_requests == 0)
    for request_id, steps in before.items():
        assert engine.steps_of[request_id] - steps <= 2, "one frame in the making when it was counted, one at the stop"
    assert engine.steps_of[slow_id] < 200
    eventually(lambda: server.service.desk.active == 0)
