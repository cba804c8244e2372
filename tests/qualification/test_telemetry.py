"""The sampler: what it sees of a process tree, how it ends, and what it does without an engine."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from qualification import schema, strictjson
from qualification.bench.clock import Clock
from qualification.errors import SubjectError
from qualification.telemetry import PackageEnergy, Sampler, Tree

_SLEEP = "import time; time.sleep(60)"
_PARENT = f"""
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "{_SLEEP}"])
print("up", flush=True)
time.sleep(60)
"""


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[bytes]]:
    """A process with one child."""
    process = subprocess.Popen([sys.executable, "-c", _PARENT], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    tree = psutil.Process(process.pid).children(recursive=True)
    yield process
    process.kill()
    process.wait()
    process.stdout.close()
    for child in tree:
        child.kill()


def test_samples_are_schema_clean_and_close_together(parent: subprocess.Popen[bytes], tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "telemetry.jsonl"
    with Sampler(pid=parent.pid, clock=clock, path=path, interval_ms=50):
        first_on_disk = path.read_bytes()
        time.sleep(0.5)
    lines = strictjson.loads_lines(path.read_bytes(), path.name)
    assert first_on_disk.count(b"\n") >= 1
    assert len(lines) >= 6
    for line in lines:
        schema.validate("telemetry", line, path.name)
        assert line["processes"] == 2
        assert line["rss_bytes"] > 2_000_000
    gaps = [b["at_ns"] - a["at_ns"] for a, b in pairwise(lines)]
    assert min(gaps) > 0
    assert sorted(gaps)[len(gaps) // 2] < 150e6


def test_cpu_time_grows_with_work(tmp_path: Path) -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        path = tmp_path / "telemetry.jsonl"
        with Sampler(pid=busy.pid, clock=Clock(), path=path, interval_ms=50):
            time.sleep(0.5)
    finally:
        busy.kill()
        busy.wait()
    lines = strictjson.loads_lines(path.read_bytes(), path.name)
    assert lines[-1]["cpu_ns"] - lines[0]["cpu_ns"] > 0.05e9


def test_a_tree_that_dies_ends_the_samples(parent: subprocess.Popen[bytes], tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    with Sampler(pid=parent.pid, clock=Clock(), path=path, interval_ms=20) as sampler:
        parent.kill()
        parent.wait()
        assert sampler._process is not None
        assert sampler._process.wait(5) == 0


def test_no_such_process_is_said(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with (
        pytest.raises(SubjectError, match="found no engine process"),
        Sampler(pid=gone.pid, clock=Clock(), path=tmp_path / "t.jsonl", interval_ms=50),
    ):
        pass


def test_the_tree_counts_children(parent: subprocess.Popen[bytes]) -> None:
    pids, rss, _ = Tree(parent.pid).read()
    assert len(pids) == 2
    assert rss > psutil.Process(parent.pid).memory_info().rss


def test_energy_survives_a_wrap_around(tmp_path: Path) -> None:
    zone = tmp_path / "intel-rapl:0"
    (tmp_path / "intel-rapl:0:0").mkdir()
    zone.mkdir()
    (zone / "max_energy_range_uj").write_text("1000\n")
    (zone / "energy_uj").write_text("900\n")
    energy = PackageEnergy(tmp_path)
    first = energy.read()
    (zone / "energy_uj").write_text("50\n")
    second = energy.read()
    assert first == 900
    assert second == 1_050


def test_energy_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    assert PackageEnergy(tmp_path).read() is None
    (tmp_path / "intel-rapl:0").mkdir()
    assert PackageEnergy(tmp_path).read() is None
