"""Starting, finding ready, questioning and stopping a subject; each way in which that can go wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from qualification.bench.clock import Clock
from qualification.errors import SubjectError, UsageError
from qualification.subject import at_endpoint, embedded_model, engine_command, shape_model, started
from tests.qualification import fake_server
from tests.qualification.fake_server import Behaviour, running

FAKE = Path(__file__).with_name("fake_server.py")


def fake(*options: str) -> tuple[str, ...]:
    return (sys.executable, str(FAKE), *options)


def script(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text)


def test_a_process_is_ready_inside_and_gone_outside() -> None:
    with started(fake("--slots", "5"), Clock()) as subject:
        assert subject.alive()
        assert subject.pid is not None
        assert psutil.pid_exists(subject.pid)
        assert subject.capabilities.max_concurrent_requests == 5
        assert (subject.capabilities.precision, subject.capabilities.device) == (None, None)
    assert not subject.alive()


def test_a_process_that_is_never_ready_is_stopped() -> None:
    with (
        pytest.raises(SubjectError, match="was not ready in time"),
        started(fake("--fault", "never_ready"), Clock(), ready_seconds=6.0),
    ):
        pass


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import sys; print('no such model', file=sys.stderr); sys.exit(3)", r"exit status 3.*\n.*no such model"),
        ("", r"exit status 0.*\n.*wrote nothing"),
        ("import time; print('hello', flush=True); time.sleep(60)", r"announced no port.*\n.*hello"),
        ("import time; print('{\"event\": 1}', flush=True); time.sleep(60)", "announced no port"),
    ],
    ids=["exits", "says-nothing", "never-listens", "other-json"],
)
def test_a_process_that_does_not_listen_is_told_with_its_last_lines(text: str, words: str) -> None:
    with pytest.raises(SubjectError, match=words), started(script(text), Clock(), ready_seconds=1.0):
        pass


def test_a_command_that_does_not_exist_is_told() -> None:
    with pytest.raises(SubjectError, match="cannot start"), started(("/no/such/engine",), Clock()):
        pass


def test_a_process_that_ignores_sigterm_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qualification.engine_process.STOP_SECONDS", 0.3)
    with started(fake("--stubborn"), Clock()) as subject:
        pid = subject.pid
    assert pid is not None
    assert not psutil.pid_exists(pid)


def test_an_endpoint_is_used_and_left_alone() -> None:
    with running(Behaviour()) as server, at_endpoint(server.url, Clock()) as subject:
        assert (subject.kind, subject.pid, subject.command) == ("endpoint", None, ())
        assert subject.alive()
        assert subject.log_tail() == ()


def test_an_endpoint_that_is_down_is_told() -> None:
    with running(Behaviour()) as server:
        url = server.url
    with pytest.raises(SubjectError, match="cannot connect"), at_endpoint(url, Clock()):
        pass


def test_an_endpoint_that_is_not_ready_is_told() -> None:
    with (
        running(Behaviour(fault="never_ready")) as server,
        pytest.raises(SubjectError, match="503"),
        at_endpoint(server.url, Clock()),
    ):
        pass


@pytest.mark.parametrize(
    "change",
    [
        {"model_kind": "custom_voice"}, {"sample_rate_hz": 48_000}, {"encoding": "pcm_f32le"}, {"channels": 2},
        {"max_concurrent_requests": 0}, {"max_concurrent_requests": True}, {"max_duration_seconds": "long"},
        {"model": ""}, {"languages": None},
    ],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_an_engine_of_another_kind_is_refused(monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]) -> None:
    good = fake_server._capabilities
    monkeypatch.setattr(fake_server, "_capabilities", lambda slots: {**good(slots), **change})
    with (
        running(Behaviour()) as server,
        pytest.raises(SubjectError, match=next(iter(change)).removeprefix("max_")[:8]),
        at_endpoint(server.url, Clock()),
    ):
        pass


def test_a_url_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError), at_endpoint("localhost:8000", Clock()):
        pass


def test_the_embedded_model_is_found_without_importing_the_engine() -> None:
    text = "import sys; from qualification.subject import embedded_model; print(embedded_model()); "
    text += "sys.exit(any(name.split('.')[0] in ('engine', 'torch') for name in sys.modules))"
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str(embedded_model())
    assert embedded_model().name == "reference_model"


def test_the_command_line_passes_on_what_was_asked() -> None:
    command = engine_command(model=Path("model"), precision="fp32", device=None)
    assert command[1:4] == ("-m", "engine", "serve")
    assert command[-2:] == ("--precision", "fp32")
    assert "--device" not in command


@pytest.fixture
def writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for the interpreter; what is written into it makes the synthetic checkpoint."""
    program = tmp_path / "python"
    monkeypatch.setattr("qualification.subject.sys.executable", str(program))
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    return program


def _write(program: Path, line: str) -> None:
    program.write_text(f"#!/bin/sh\n{line}\n")
    program.chmod(0o755)


def test_the_synthetic_checkpoint_is_written_once(writer: Path) -> None:
    _write(writer, 'test "$1 $2 $3" = "-m engine make-shape" && mkdir "$4" && echo made > "$4/file"')
    place = shape_model()
    assert (place / "file").read_text() == "made\n"
    _write(writer, "exit 1")
    assert shape_model() == place


def test_half_a_synthetic_checkpoint_is_not_kept(writer: Path) -> None:
    _write(writer, 'mkdir "$4"; echo disk full >&2; exit 1')
    with pytest.raises(SubjectError, match="disk full"):
        shape_model()
    assert list((writer.parent / "cache").iterdir()) == []
