"""Commit and dirty flag come from the tree itself, not from one around it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from qualification.source_state import SourceState, source_state


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", str(tmp_path), *identity, *arguments], check=True, capture_output=True, timeout=30)

    git("init", "-q")
    (tmp_path / "file").write_text("one")
    git("add", "file")
    git("commit", "-q", "-m", "one")
    return tmp_path


def test_clean(tree: Path) -> None:
    state = source_state(tree)
    assert state.commit is not None
    assert len(state.commit) == 40
    assert state.dirty is False


def test_a_changed_tracked_file_is_dirty_and_an_untracked_one_is_not(tree: Path) -> None:
    (tree / "new").write_text("new")
    assert source_state(tree).dirty is False
    (tree / "file").write_text("two")
    assert source_state(tree).dirty is True


def test_a_directory_inside_a_tree_is_not_that_tree(tree: Path) -> None:
    (tree / "inner").mkdir()
    assert source_state(tree / "inner") == SourceState(commit=None, dirty=None)


def test_no_tree_and_no_directory(tmp_path: Path) -> None:
    assert source_state(tmp_path) == SourceState(commit=None, dirty=None)
    assert source_state(tmp_path / "nowhere") == SourceState(commit=None, dirty=None)
