"""The state of the source tree that a run came from: a Git commit, and whether tracked files differ from it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

_SECONDS = 30


@dataclass(frozen=True, kw_only=True)
class SourceState:
    """`commit` None: no Git tree there. `dirty` None: it cannot be known."""

    commit: str | None
    dirty: bool | None

    def to_json(self) -> dict[str, str | bool | None]:
        """The `source` object of `run.json`."""
        return {"commit": self.commit, "dirty": self.dirty}


def source_state(directory: Path | None = None) -> SourceState:
    """The state of the Git tree whose root is `directory` (default: where this package's checkout would be).

    An installed package inside some other project's tree is not that project: the root must be the directory itself.
    """
    directory = directory or Path(__file__).resolve().parent.parent
    root = _git(directory, "rev-parse", "--show-toplevel")
    if root is None or Path(root.strip()).resolve() != directory.resolve():
        return SourceState(commit=None, dirty=None)
    commit = _git(directory, "rev-parse", "HEAD")
    if commit is None:
        return SourceState(commit=None, dirty=None)
    changes = _git(directory, "status", "--porcelain", "--untracked-files=no")
    return SourceState(commit=commit.strip(), dirty=None if changes is None else bool(changes.strip()))


def _git(directory: Path, *arguments: str) -> str | None:
    command = ["git", "-C", str(directory), *arguments]
    try:
        return subprocess.run(command, capture_output=True, check=True, text=True, timeout=_SECONDS).stdout
    except (OSError, subprocess.SubprocessError):
        return None
