"""The build context: exactly the files that the Dockerfile copies, as one deterministic archive.

Made from named places instead of a checkout's root, so that nothing private can slip in, and so that another engine
or model can take the place of ours. Ignored: caches, tests, evidence.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_SKIPPED = frozenset({"__pycache__", "reference_model", ".DS_Store"})


@dataclass(frozen=True, kw_only=True)
class Context:
    """Where the parts of a context come from."""

    dockerfile: Path
    engine: Path
    qualification: Path
    schemas: Path
    locks: Path
    wheels: tuple[Path, ...]
    pins: Path
    model: Path


def write(context: Context, target: Path, *, epoch: int) -> None:
    """Write the archive that an engine's build call takes."""
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        for name, path in sorted(_members(context)):
            header = archive.gettarinfo(path, name, None)
            header.uid = header.gid = 0
            header.uname = header.gname = ""
            header.mtime = epoch
            header.mode = 0o644
            with path.open("rb") as stream:
                archive.addfile(header, stream)


def _members(context: Context) -> Iterator[tuple[str, Path]]:
    yield "Dockerfile", context.dockerfile
    yield "pins.json", context.pins
    for wheel in context.wheels:
        yield f"wheelhouse/{wheel.name}", wheel
    for name in ("engine", "qualification", "schemas", "locks"):
        yield from _tree(name, getattr(context, name))
    yield from _tree("model", context.model, skipped=frozenset())


def _tree(name: str, root: Path, skipped: frozenset[str] = _SKIPPED) -> Iterator[tuple[str, Path]]:
    for path in root.rglob("*"):
        relative = path.relative_to(root)
        if path.is_file() and not skipped.intersection(relative.parts):
            yield f"{name}/{relative.as_posix()}", path
