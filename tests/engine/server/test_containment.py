"""An engine that fails, dies, hangs or does not let go: the request fails alone, or readiness turns 503 and stays."""

from __future__ import annotations

import threading
from uuid import uuid4

from tests.engine.server.client import request_bytes, speech_bytes
from tests.engine.server.conftest import Running, StartServer, eventually
from tests.engine.server.fake_engine import FakeEngine


def readiness(server: Running) -> int:
    return server.ask(request_bytes("GET", "/health/ready")).status


def test_a_failing_row_leaves_its_neighbours(start_server: StartServer) -> None:
    server = start_server(FakeEngine(slots=2, frame_seconds=0.002))
    healthy = server.ask(speech_bytes("frames=40"))
    failing = server.ask(speech_bytes("frames=40 oom_at=5"))
    assert list(failing.parts())[-1].document["error"]["code"] == "internal_error"
    assert list(healthy.parts())[-1].document["type"] == "end"
    assert readiness(server) == 200


def test_a_dead_engine_turns_readiness_off_for_good(start_server: StartServer) -> None:
    server = start_server()
    wire = server.ask(speech_bytes("frames=40 die_at=5"))
    assert list(wire.parts())[-1].document["error"]["code"] == "backend_unavailable"
    eventually(lambda: readiness(server) == 503)
    refused = server.ask(speech_bytes())
    assert (refused.status, refused.document()["code"]) == (503, "backend_unavailable")
    assert server.ask(request_bytes("GET", "/health/live")).status == 200
    assert server.ask(request_bytes("GET", "/health/ready")).document()["status"] == "not_ready"


def test_a_hanging_engine_is_given_up(start_server: StartServer) -> None:
    server = start_server(stall_seconds=0.3, retirement_seconds=0.3)
    request_id = uuid4()
    wire = server.ask(speech_bytes("frames=40 hang_at=5", {"X-Request-Id": str(request_id)}))
    last = list(wire.parts())[-1].document
    assert last["error"]["code"] == "retirement_timeout"
    assert readiness(server) == 503
    refused = server.ask(speech_bytes())
    assert (refused.status, refused.document()["code"]) == (503, "backend_unavailable")
    deleted = server.ask(request_bytes("DELETE", f"/v1/requests/{request_id}"))
    assert (deleted.status, deleted.document()["code"]) == (503, "retirement_timeout")
    metrics = server.ask(request_bytes("GET", "/metrics")).whole().decode()
    assert "assay_retirement_timeouts_total 1.0" in metrics
    assert "assay_tombstones 1.0" in metrics


def test_a_request_that_ignores_cancellation_leaves_a_tombstone(start_server: StartServer) -> None:
    server = start_server(FakeEngine(frame_seconds=0.01), retirement_seconds=0.2)
    request_id = uuid4()
    wire = server.wire().send(speech_bytes("frames=1000 deaf=1", {"X-Request-Id": str(request_id)}, stream=False))
    eventually(lambda: server.engine.steps_of.get(request_id))
    assert server.ask(request_bytes("DELETE", f"/v1/requests/{request_id}")).status == 202
    assert (wire.answer().status, wire.document()["code"]) == (503, "retirement_timeout")
    assert readiness(server) == 503


def test_a_stalled_row_that_can_be_stopped_costs_no_readiness(start_server: StartServer) -> None:
    """A gated engine makes nothing, but still lets go: the request fails, the server stays ready."""
    gate = threading.Semaphore(0)
    server = start_server(FakeEngine(gate=gate), stall_seconds=0.3)
    wire = server.ask(speech_bytes())
    assert list(wire.parts())[-1].document["error"]["code"] == "backend_unavailable"
    assert readiness(server) == 200
    gate.release(10)
    assert list(server.ask(speech_bytes()).parts())[-1].document["type"] == "end"
