"""The source state that an image is built from.

Commit, whether the tree is clean, and the commit's time as the build's epoch.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from qualification.container.faults import ContainerFault, FaultCode
from qualification.errors import InputError


@dataclass(frozen=True, kw_only=True)
class SourceState:
    """A commit and what was changed since. `epoch` is the commit's time in seconds."""

    commit: str
    epoch: int
    changed: tuple[str, ...]

    @property
    def dirty(self) -> bool:
        return bool(self.changed)

    @property
    def revision(self) -> str:
        """The commit, marked where the tree has changes, so that no label claims more than is true."""
        return f"{self.commit}-dirty" if self.dirty else self.commit


def source_state(checkout: Path) -> SourceState:
    """Ask Git. Raises `InputError` outside a checkout."""
    commit = _git(checkout, "rev-parse", "HEAD").strip()
    changed = _git(checkout, "status", "--porcelain", "--untracked-files=all").splitlines()
    return SourceState(
        commit=commit,
        epoch=int(_git(checkout, "show", "-s", "--format=%ct", "HEAD")),
        changed=tuple(line[3:] for line in changed),
    )


def require_clean(state: SourceState) -> None:
    """Raises `ContainerFault` (`dirty_tree`) naming the first changed files."""
    if state.dirty:
        named = ", ".join(state.changed[:5])
        raise ContainerFault(
            FaultCode.DIRTY_TREE,
            f"{len(state.changed)} files differ from commit {state.commit[:12]} ({named}); commit or remove them",
        )


def _git(checkout: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(checkout), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise InputError(
            f"git {arguments[0]} does not work in {checkout.name or checkout}; build from a Git checkout"
        ) from error
    return done.stdout
