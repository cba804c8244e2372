"""The adapter of OpenAI-shaped endpoints: a scripted endpoint, this project's own, and a whole qualification."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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
from qualification.subjects import openai_server
from qualification.subjects.openai_server import Endpoint, Server
from tests.engine.server.conftest import servers
from tests.engine.server.fake_engine import speech_pcm
from tests.qualification.desk import Desk
from tests.qualification.fake_server import voice

FRAME = 3_840


@dataclass
class Script:
    """What the scripted endpoint answers: pieces of PCM with a pause before each but the first."""

    pieces: list[bytes] = field(default_factory=lambda: [bytes([1, 2]) * (FRAME // 2), bytes([3, 4]) * FRAME])
    pause: float = 0.0
    status: int = 200
    declared: int | None = None
    speak: Callable[[str], bytes] | None = None
    heard: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def endpoint(script: Script) -> Iterator[Target]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            script.heard.append({**asked, "path": self.path, "authorization": self.headers["Authorization"]})
            self.send_response(script.status)
            if script.declared is not None:
                self.send_header("Content-Length", str(script.declared))
            self.end_headers()
            for number, piece in enumerate([script.speak(asked["input"])] if script.speak else script.pieces):
                time.sleep(script.pause if number else 0)
                self.wfile.write(piece)
                self.wfile.flush()

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with running(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as target:
        yield target


@contextmanager
def running(server: ThreadingHTTPServer) -> Iterator[Target]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield Target(host="127.0.0.1", port=server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def adapted(target: Target, *takes: str, model: str = "m") -> Iterator[Target]:
    """The adapter in front of an endpoint."""
    told = Endpoint(
        target=target, model=model, voice="alloy", takes=frozenset(takes), token="t", slots=3, max_seconds=60.0
    )
    with running(Server(("127.0.0.1", 0), told)) as place:
        yield place


def spoken(target: Target, **changes: Any) -> Observation:
    """One request as the harness sends it to a subject of these capabilities."""
    clock = Clock()
    values: dict[str, Any] = {
        "request_id": str(uuid4()), "text": "One.", "voice_description": "Calm.", "language": "english", "seed": 7,
        "max_duration_seconds": 4.0, "sampling": {}, "leaves_open": ask_capabilities(target, clock).leaves_open,
    }  # fmt: skip
    call = SpeechCall(**{**values, **changes})

    async def once() -> Observation:
        opened = await open_for_speech(target, clock, Deadlines())
        return await speak(opened, call, clock) if isinstance(opened, Connection) else opened

    return asyncio.run(once())


def said(script: Script, *takes: str, **changes: Any) -> Observation:
    with endpoint(script) as target, adapted(target, *takes) as place:
        return spoken(place, **changes)


def test_sound_is_passed_on_and_no_end_and_no_seed_are_made_up() -> None:
    script = Script()
    seen = said(script)
    assert seen.outcome is RequestOutcome.OK, seen.error_detail
    assert [packet.frames for packet in seen.packets] == [1, 2]
    assert [packet.final for packet in seen.packets] == [False, True]
    assert seen.pcm_sha256 == sha256_bytes(b"".join(script.pieces))
    assert (seen.finish_reason, seen.echoed_seed) == (None, None)
    heard = script.heard[0]
    assert heard == {
        "model": "m", "voice": "alloy", "input": "One.", "instructions": "Calm.", "response_format": "pcm",
        "path": "/v1/audio/speech", "authorization": "Bearer t",
    }  # fmt: skip


def test_delivery_is_as_observed() -> None:
    pieces = [bytes(FRAME), bytes(FRAME), bytes(FRAME * 2)]
    seen = said(Script(pieces=pieces, pause=0.15))
    first, second, third = (packet.at_ns - seen.t0_ns for packet in seen.packets)
    assert first < 100_000_000
    assert second - first > 100_000_000 < third - second


def test_what_is_less_than_a_frame_at_the_end_is_dropped_and_told(capfd: pytest.CaptureFixture[str]) -> None:
    seen = said(Script(pieces=[bytes(FRAME + 100)]))
    assert (seen.outcome, seen.samples) == (RequestOutcome.OK, FRAME // 2)
    assert json.loads(capfd.readouterr().out)["bytes"] == 100


def test_at_the_ceiling_the_adapter_hangs_up_and_says_so() -> None:
    seen = said(Script(pieces=[bytes(FRAME * 20)]), max_duration_seconds=0.8)
    assert (seen.outcome, seen.finish_reason, seen.samples) == (RequestOutcome.OK, "length", 10 * FRAME // 2)
    exact = said(Script(pieces=[bytes(FRAME * 10)]), max_duration_seconds=0.8)
    assert (exact.outcome, exact.finish_reason, exact.samples) == (RequestOutcome.OK, None, 10 * FRAME // 2)


@pytest.mark.parametrize(
    ("script", "outcome", "code"),
    [
        (Script(pieces=[b"RIFF" + bytes(FRAME)]), RequestOutcome.STREAM_ERROR, "not_pcm"),
        (Script(pieces=[bytes(FRAME)], declared=2 * FRAME), RequestOutcome.STREAM_ERROR, "endpoint_broke_off"),
        (Script(pieces=[bytes(10)]), RequestOutcome.STREAM_ERROR, "no_audio"),
        (Script(pieces=[b'{"error": 1}'], status=429), RequestOutcome.REFUSED, "endpoint_429"),
        (Script(pieces=[b""], status=302), RequestOutcome.REFUSED, "endpoint_302"),
    ],
    ids=["wav", "short", "nothing", "busy", "elsewhere"],
)
def test_faults_of_the_endpoint_keep_their_name(script: Script, outcome: RequestOutcome, code: str) -> None:
    seen = said(script)
    assert (seen.outcome, seen.error_code) == (outcome, code)


def test_a_seed_that_is_taken_must_be_echoed() -> None:
    seen = said(Script(), "seed")
    assert (seen.outcome, seen.error_code) == (RequestOutcome.REFUSED, "seed_not_echoed")


def test_without_an_endpoint_it_is_not_ready() -> None:
    with running(ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)) as gone:
        pass
    with adapted(gone) as place:
        assert readiness(place, Clock()) != "ready"
        assert spoken(place).error_code == "endpoint_unreachable"


def test_this_projects_own_endpoint_gives_the_samples_of_its_contract() -> None:
    with servers() as start:
        host, port = start().address
        own = Target(host=host, port=port)
        with adapted(own, "seed", "language", "max_duration", model="assay-fake") as place:
            seen = spoken(place, text="Hi frames=30", seed=4)
            direct = spoken(own, text="Hi frames=30", seed=4)
            told = ask_capabilities(place, Clock())
    assert (told.adapter, told.leaves_open) == (True, frozenset({"eos", "sampling"}))
    assert seen.outcome is RequestOutcome.OK, seen.error_detail
    assert (seen.echoed_seed, seen.finish_reason, direct.finish_reason) == (4, None, "stop")
    assert seen.pcm == direct.pcm == speech_pcm(4, 30)


@pytest.mark.parametrize("options", [("--takes", "sampling"), ("--endpoint", "ftp://x"), ("--token-from", "NO_SUCH")])
def test_options_that_cannot_be_are_told(options: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        openai_server.main(["--endpoint", "http://127.0.0.1:1", "--model", "m", *options])
    assert options[0].lstrip("-") in capsys.readouterr().err


@pytest.mark.usefixtures("undrawn")
def test_a_qualification_of_an_endpoint_says_what_it_cannot_say(desk: Desk) -> None:
    script = Script(speak=lambda text: voice(text, "", 1, 25).tobytes())
    with endpoint(script) as target:
        adapter = f"{shlex.quote(sys.executable)} -m qualification.subjects.openai_server --endpoint {target.url}"
        assert desk.qualify("--engine-command", f"{adapter} --model m") == 7
    run, outcomes = desk.json("run.json"), desk.outcomes()
    assert (run["tier"], run["subject"]["kind"]) == ("unverified", "adapter")
    assert run["subject"]["leaves_open"] == ["eos", "language", "max_duration", "sampling", "seed"]
    results = {result["id"]: result["reason_code"] for result in desk.json("gates.json")["results"]}
    for gate, reason in (
        ("eos.coverage", "eos_unknown"),
        ("eos.rate", "eos_unknown"),
        ("wire.reproducibility", "seed_not_controlled"),
        ("wire.stream-contract", "adapter_speaks"),
    ):
        assert (outcomes[gate], results[gate]) == ("not_performed", reason)
    assert outcomes["audio.speech-present"] == "passed"
    numbers = {number["id"]: number for number in desk.json("summary.json")["numbers"]}
    assert (numbers["run.ends.unnatural_rate"]["value"], numbers["run.ends.natural"]["n"]) == (None, 0)
    assert {"adapter", "ends_untold", "not_controlled"} <= {
        limitation["code"] for limitation in desk.json("summary.json")["limitations"]
    }
    assert not (desk.out / "telemetry.jsonl").exists()
    assert desk.verify() == 7
