"""Start-up, readiness, signals, draining and exit statuses of a real process."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from engine.contract import CLOSE_SECONDS
from engine.server import process
from engine.server.lifecycle import (
    ENGINE_CLOSE_SECONDS,
    EXIT_FORCED,
    EXIT_WATCHDOG,
    FAREWELL_SECONDS,
    LAST_RESORT_SECONDS,
)
from engine.server.settings import LONGEST_GRACE_SECONDS
from tests.engine.server.client import request_bytes, speech_bytes
from tests.engine.server.conftest import ROOT, StartProcess, StartServer, eventually
from tests.engine.server.fake_engine import FakeEngine

BOTH = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])


def test_health_and_capabilities(start_server: StartServer) -> None:
    server = start_server(FakeEngine(slots=3, max_codec_frames=500))
    assert server.ask(request_bytes("GET", "/health/live")).document() == {"status": "live"}
    assert server.ask(request_bytes("GET", "/health/ready")).document() == {
        "status": "ready",
        "model": "assay-fake",
        "model_kind": "voice_design",
        "sample_rate_hz": 24000,
        "engine_loaded": True,
    }
    assert server.ask(request_bytes("GET", "/v1/capabilities")).document() == {
        "model": "assay-fake",
        "model_kind": "voice_design",
        "voice_clone": False,
        "sample_rate_hz": 24000,
        "channels": 1,
        "encoding": "pcm_s16le",
        "samples_per_codec_frame": 1920,
        "max_codec_frames": 500,
        "max_concurrent_requests": 3,
        "max_text_bytes": 32768,
        "max_voice_description_bytes": 4096,
        "max_duration_seconds": 40.0,
        "languages": [
            "auto", "chinese", "english", "japanese", "korean", "german", "french", "russian", "portuguese", "spanish",
            "italian",
        ],
        "precision": "fp32",
        "device": "cpu",
        "streaming": "multipart/mixed",
    }  # fmt: skip
    assert server.ask(speech_bytes(max_duration_seconds=40.1)).document()["code"] == "invalid_max_duration"


def test_unknown_paths_and_methods_are_problems(start_server: StartServer) -> None:
    server = start_server()
    for method, path, status, code in (
        ("GET", "/v1/nothing", 404, "not_found"),
        ("GET", "/v1/voice-design/speech", 405, "method_not_allowed"),
        ("POST", "/v1/capabilities", 405, "method_not_allowed"),
        ("POST", "/v1/voice-design/speech/", 404, "not_found"),
    ):
        answer = server.ask(request_bytes(method, path))
        assert (answer.status, answer.document()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"


def test_live_but_not_ready_while_the_engine_loads(start_process: StartProcess) -> None:
    server = start_process("--start-seconds", "1.5", wait=False)
    assert server.ask(request_bytes("GET", "/health/live")).status == 200
    ready = server.ask(request_bytes("GET", "/health/ready"))
    assert ready.status == 503
    assert ready.document()["status"] == "not_ready"
    assert server.ask(request_bytes("GET", "/health/ready")).document()["engine_loaded"] is False
    for data in (speech_bytes(), request_bytes("GET", "/v1/capabilities")):
        refused = server.ask(data)
        assert (refused.status, refused.document()["code"]) == (503, "backend_unavailable")
    eventually(server.ready, 10)
    assert server.ask(speech_bytes()).status == 200


@BOTH
def test_streams_finish_within_the_grace_time(start_process: StartProcess, number: signal.Signals) -> None:
    server = start_process("--frame-seconds", "0.02")
    wire = server.ask(speech_bytes("frames=40"))
    parts = wire.parts()
    next(parts)
    idle = server.wire()
    idle.ask(request_bytes("GET", "/health/live")).document()
    server.signal(number)
    eventually(lambda: idle.ask(request_bytes("GET", "/health/ready")).status == 503)
    idle.whole()
    refused = idle.ask(speech_bytes())
    assert (refused.status, refused.document()["code"]) == (503, "server_shutting_down")
    assert list(parts)[-1].document["type"] == "end"
    assert server.exit_code(10) == 0


@BOTH
def test_streams_get_an_error_part_after_it(start_process: StartProcess, number: signal.Signals) -> None:
    server = start_process("--frame-seconds", "0.02", "--grace-seconds", "0.5")
    wire = server.ask(speech_bytes("frames=1400"))
    buffered = server.wire().send(speech_bytes("frames=1400", stream=False))
    next(wire.parts())
    server.signal(number)
    assert list(wire.parts())[-1].document["error"]["code"] == "server_shutting_down"
    assert (buffered.answer().status, buffered.document()["code"]) == (503, "server_shutting_down")
    assert server.exit_code(10) == 0


def test_a_second_signal_ends_the_grace_time(start_process: StartProcess) -> None:
    server = start_process("--frame-seconds", "0.02")
    wire = server.ask(speech_bytes("frames=1400"))
    start = time.perf_counter()
    server.signal(signal.SIGTERM)
    time.sleep(0.2)
    server.signal(signal.SIGTERM)
    assert list(wire.parts())[-1].document["error"]["code"] == "server_shutting_down"
    assert server.exit_code(10) == 0
    assert time.perf_counter() - start < 8


@BOTH
def test_signal_during_start_up(start_process: StartProcess, number: signal.Signals) -> None:
    server = start_process("--start-seconds", "60", wait=False)
    start = time.perf_counter()
    server.signal(number)
    assert server.exit_code(15) == 0
    assert time.perf_counter() - start < 8


def test_engine_that_cannot_start_ends_the_process_with_its_status(start_process: StartProcess) -> None:
    server = start_process("--fail-start", wait=False)
    assert server.exit_code(10) == 3
    assert "the model directory is empty" in server.log.read_text()


def test_a_hanging_engine_does_not_hold_up_the_exit_and_its_status_tells(start_process: StartProcess) -> None:
    server = start_process("--grace-seconds", "0", "--retirement-seconds", "1")
    wire = server.ask(speech_bytes("frames=40 hang_at=5"))
    next(wire.parts())
    eventually(lambda: server.metric("assay_engine_frame_steps_total") >= 5, 10)
    time.sleep(0.6)  # longer than the fake sleeps between its steps: it hangs by now
    server.signal(signal.SIGTERM)
    start = time.perf_counter()
    assert list(wire.parts())[-1].document["error"]["code"] == "retirement_timeout"
    assert server.exit_code(20) == EXIT_FORCED
    assert time.perf_counter() - start < 1 + ENGINE_CLOSE_SECONDS + 2
    assert "engine_close_hangs" in server.log.read_text()


def test_the_waits_of_a_shutdown_fit_into_each_other() -> None:
    """The engine gives up before the server gives up on it, and all of it ends before the last resort."""
    assert CLOSE_SECONDS < ENGINE_CLOSE_SECONDS
    longest = LONGEST_GRACE_SECONDS + FAREWELL_SECONDS + ENGINE_CLOSE_SECONDS + process.CLOSE_SECONDS
    assert longest < LAST_RESORT_SECONDS < 35


def test_watchdog_ends_a_server_whose_engine_died(start_process: StartProcess) -> None:
    server = start_process("--watchdog-exit-seconds", "0.5")
    server.ask(speech_bytes("frames=40 die_at=5")).whole()
    assert server.exit_code(10) == EXIT_WATCHDOG


def test_port_in_use_is_a_usage_error(start_process: StartProcess) -> None:
    taken = start_process()
    command = [sys.executable, "-m", "tests.engine.server.fake_server", "--port", str(taken.address[1])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 2
    assert "choose another" in done.stderr
