"""The server around the real engine with a tiny checkpoint: `python -m engine serve` as a process."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.engine.server.client import request_bytes, speech_bytes
from tests.engine.server.conftest import Process, eventually, launch


@pytest.fixture(scope="module")
def server(tiny_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    log = tmp_path_factory.mktemp("real") / "server.log"
    small = ("--device", "cpu", "--max-concurrent-requests", "2", "--max-positions", "512", "--max-frames", "128")
    found = launch(("--model", str(tiny_directory), *small), log, module=("engine", "serve"))
    try:
        eventually(found.ready, 100)
        yield found
        found.signal(signal.SIGTERM)
        assert found.exit_code() == 0
    finally:
        found.process.kill()
        found.process.wait(10)
        found.close()


def test_stream_and_wav_are_the_same_samples(server: Process) -> None:
    fields: dict[str, Any] = {"seed": 42, "max_duration_seconds": 0.8}
    start, *audio, end = list(server.ask(speech_bytes("Good morning.", **fields)).parts())
    assert start.document["seed"] == 42
    assert end.document["finish_reason"] in ("stop", "length")
    streamed = b"".join(part.body for part in audio)
    assert len(streamed) == end.document["metrics"]["emitted_samples"] * 2 > 0
    buffered = server.ask(speech_bytes("Good morning.", stream=False, **fields)).whole()
    assert buffered[44:] == streamed


def test_delete_frees_the_slot(server: Process) -> None:
    request_id = uuid4()
    wire = server.ask(speech_bytes("Good morning. " * 20, {"X-Request-Id": str(request_id)}))
    parts = wire.parts()
    next(parts)
    answer = server.ask(request_bytes("DELETE", f"/v1/requests/{request_id}"))
    last = list(parts)[-1].document
    if answer.status == 202:  # a tiny model may have ended by itself in between
        assert last.get("error", {"code": "request_cancelled"})["code"] == "request_cancelled"
    eventually(lambda: server.metric("assay_active_requests") == 0)


def test_a_prompt_that_does_not_fit_is_refused(server: Process) -> None:
    found = server.ask(speech_bytes("word " * 6_000))
    assert found.status == 422
    assert found.document()["code"] in ("invalid_text", "invalid_max_duration")


def test_engine_counters_are_exported(server: Process) -> None:
    assert server.metric("assay_engine_frame_steps_total") > 0
    assert server.metric("assay_engine_rows_advanced_total") > 0
