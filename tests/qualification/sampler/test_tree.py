"""The process tree: who belongs to it, what it holds, and what is read slowly beside the samples."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from qualification.sampler.tree import SlowReader, Tree

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


def smaps(proc: Path, pid: int, kilobytes: int) -> None:
    """What the kernel would say of a process's memory."""
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "smaps_rollup").write_text(f"0-1 ---p 0 0 [rollup]\nRss: 900 kB\nPss: {kilobytes} kB\n")


def test_the_tree_counts_children(parent: subprocess.Popen[bytes]) -> None:
    usage = Tree(parent.pid).read()
    assert usage is not None
    assert len(usage.pids) == 2
    assert usage.rss_bytes > psutil.Process(parent.pid).memory_info().rss


def test_a_child_that_comes_later_is_found_by_a_refresh(tmp_path: Path) -> None:
    later = "import subprocess, sys; sys.stdin.readline(); p = subprocess.Popen([sys.executable, '-c', "
    later += f"'{_SLEEP}']); print(p.pid, flush=True); sys.stdin.readline(); p.kill(); p.wait()"
    process = subprocess.Popen([sys.executable, "-c", later], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    tree = Tree(process.pid)
    process.stdin.write("\n")
    process.stdin.flush()
    child = int(process.stdout.readline())
    before, _ = tree.read(), tree.refresh()
    after = tree.read()
    process.communicate("\n")
    assert before is not None
    assert after is not None
    assert (child in before.pids, child in after.pids) == (False, True)


def test_a_root_that_has_ended_is_no_tree(parent: subprocess.Popen[bytes]) -> None:
    tree = Tree(parent.pid)
    parent.kill()
    parent.wait()
    assert tree.read() is None
    with pytest.raises(psutil.NoSuchProcess):
        Tree(parent.pid)


def test_proportional_memory_is_summed_over_the_tree(parent: subprocess.Popen[bytes], tmp_path: Path) -> None:
    tree = Tree(parent.pid, proc=tmp_path)
    usage = tree.read()
    assert usage is not None
    for number, pid in enumerate(sorted(usage.pids)):
        smaps(tmp_path, pid, 100 + number)
    assert tree.read_pss() == 201 * 1024


def test_proportional_memory_is_none_where_the_kernel_does_not_tell(
    parent: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    assert Tree(parent.pid, proc=tmp_path).read_pss() is None
    (tmp_path / str(parent.pid)).mkdir()
    (tmp_path / str(parent.pid) / "smaps_rollup").write_text("Rss: 900 kB\n")
    assert Tree(parent.pid, proc=tmp_path).read_pss() is None


def test_a_slow_kernel_does_not_hold_up_the_samples(
    parent: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = Tree(parent.pid)

    def slowly() -> int:
        time.sleep(0.3)
        return 77

    monkeypatch.setattr(tree, "read_pss", slowly)
    slow = SlowReader(tree, seconds=0.01)
    began = time.monotonic()
    assert slow.take() is None
    assert tree.read() is not None
    assert time.monotonic() - began < 0.2
    while (found := slow.take()) is None:
        assert time.monotonic() - began < 10
        time.sleep(0.01)
    assert (found, slow.take()) == (77, None)
    slow.close()
