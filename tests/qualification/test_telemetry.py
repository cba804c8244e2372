"""The sampler as the harness uses it: before the subject, beside it, and what it leaves when it or the subject dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest

from qualification import schema, strictjson
from qualification.bench.clock import Clock
from qualification.errors import SubjectError
from qualification.telemetry import Sampler

_BUSY = "print('up', flush=True)\nwhile True: pass"


@pytest.fixture
def subject() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does nothing but work."""
    process = subprocess.Popen([sys.executable, "-c", _BUSY], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "telemetry.jsonl"


def lines(path: Path) -> list[dict[str, Any]]:
    found = list(strictjson.loads_lines(path.read_bytes(), path.name))
    for line in found:
        schema.validate("telemetry", line, path.name)
    return found


def told(sampler: Sampler) -> dict[str, Any]:
    document = sampler.document("20260101T000000Z-abc123", 1)
    schema.validate("sampler", document, "sampler.json")
    return document


def test_the_idle_machine_is_sampled_first_and_then_the_subject(subject: subprocess.Popen[bytes], path: Path) -> None:
    with Sampler(clock=Clock(), path=path, interval_ms=20) as sampler:
        assert path.read_bytes().endswith(b"\n")
        time.sleep(0.2)
        sampler.watch(subject.pid, 30)
        watched = len(lines(path))
        time.sleep(1.3)
    found = lines(path)
    document = told(sampler)
    idle, busy = [s for s in found if not s["processes"]], [s for s in found if s["processes"]]
    assert len(idle) >= 3
    assert found == idle + busy
    assert found[watched - 1]["processes"] == 1
    assert all(s["rss_bytes"] is s["cpu_ns"] is s["pss_bytes"] is None for s in idle)
    assert all(s["rss_bytes"] > 2_000_000 for s in busy)
    assert 0 < busy[-1]["cpu_ns"] - busy[0]["cpu_ns"] < 1.5e9
    assert busy[-1]["machine_cpu_ns"] - busy[0]["machine_cpu_ns"] >= busy[-1]["cpu_ns"] - busy[0]["cpu_ns"] - 0.1e9
    pss = [s["pss_bytes"] for s in busy if s["pss_bytes"] is not None]
    assert 1 <= len(pss) <= 3  # once a second, however often the rest is read
    assert max(pss) <= max(s["rss_bytes"] for s in busy)
    gaps = [after["at_ns"] - before["at_ns"] for before, after in pairwise(found)]
    assert min(gaps) > 0
    assert sorted(gaps)[len(gaps) // 2] < 100e6
    assert (document["samples"], document["ended"], document["fault"]) == (len(found), "stopped", None)
    assert document["interval_ms"] == 30


def test_a_harness_that_is_busy_does_not_hold_up_the_samples(subject: subprocess.Popen[bytes], path: Path) -> None:
    with Sampler(clock=Clock(), path=path, interval_ms=50) as sampler:
        sampler.watch(subject.pid, 50)
        before, end = len(lines(path)), time.monotonic() + 0.6
        while time.monotonic() < end:  # as a client loop does that never gives way
            pass
        assert len(lines(path)) - before >= 5


def test_a_subject_that_dies_ends_the_samples(subject: subprocess.Popen[bytes], path: Path) -> None:
    with Sampler(clock=Clock(), path=path) as sampler:
        sampler.watch(subject.pid, 20)
        subject.kill()
        subject.wait()
        assert sampler._process is not None
        assert sampler._process.wait(5) == 0
    document = told(sampler)
    assert (document["ended"], document["fault"], document["samples"]) == ("subject_gone", None, len(lines(path)))


def test_no_such_process_is_said(path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with Sampler(clock=Clock(), path=path) as sampler, pytest.raises(SubjectError, match="found no engine process"):
        sampler.watch(gone.pid, 50)
    assert told(sampler)["ended"] == "no_subject"


def test_a_sampler_that_crashes_is_a_recorded_fault(subject: subprocess.Popen[bytes], path: Path) -> None:
    with Sampler(clock=Clock(), path=path) as sampler:
        sampler.watch(subject.pid, 20)
        time.sleep(0.2)
        assert sampler._process is not None
        os.kill(sampler._process.pid, signal.SIGKILL)
        sampler._process.wait()
        with path.open("ab") as file:
            file.write(b'{"at_ns": 1')  # as a crash in the middle of a line would leave it
    document = told(sampler)
    assert document["ended"] == "crashed"
    assert "status -9" in document["fault"]
    assert "11 bytes of a broken line were dropped" in document["fault"]
    assert document["samples"] == len(lines(path)) > 1


def test_a_sampler_that_died_before_the_subject_came_is_a_fault_too(
    subject: subprocess.Popen[bytes], path: Path
) -> None:
    with Sampler(clock=Clock(), path=path) as sampler:
        assert sampler._process is not None
        os.kill(sampler._process.pid, signal.SIGKILL)
        sampler._process.wait()
        sampler.watch(subject.pid, 20)
    document = told(sampler)
    assert document["ended"] == "crashed"
    assert "status -9" in document["fault"]


def test_a_sample_that_is_missing_from_the_file_is_a_fault(path: Path) -> None:
    with Sampler(clock=Clock(), path=path, interval_ms=10) as sampler:
        time.sleep(0.1)
    kept = path.read_bytes().splitlines(keepends=True)[1:]
    path.write_bytes(b"".join(kept))
    document = told(sampler)
    assert (document["ended"], document["samples"]) == ("stopped", len(kept))
    assert f"wrote {len(kept) + 1} samples and {len(kept)} are in the file" in document["fault"]


def test_a_sampler_does_not_outlive_its_harness(path: Path) -> None:
    script = "import sys, os, time\nfrom pathlib import Path\nfrom qualification.bench.clock import Clock\n"
    script += "from qualification.telemetry import Sampler\n"
    script += f"s = Sampler(clock=Clock(), path=Path({str(path)!r})).__enter__()\n"
    script += "print(s._process.pid, flush=True); os.kill(os.getpid(), 9)"
    harness = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2]
    )
    pid = int(harness.stdout)
    deadline = time.monotonic() + 10
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert lines(path)


def test_a_file_that_is_there_already_is_never_written_over(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path.write_bytes(b"of another run")
    with pytest.raises(SubjectError, match="ended before its first sample"), Sampler(clock=Clock(), path=path):
        pass
    assert path.read_bytes() == b"of another run"
    assert "FileExistsError" in capfd.readouterr().err
