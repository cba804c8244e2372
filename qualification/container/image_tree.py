"""The files of an image as they lie after all its layers, read from the layers alone; no engine, no running container.

Whiteouts are applied as an engine applies them. Source: the layer rules of the OCI image specification.
"""

from __future__ import annotations

import posixpath
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from qualification.container.layer import Layer, canonical

_WHITEOUT = ".wh."
_OPAQUE = ".wh..wh..opq"


class ImageTree:
    """Paths (without a leading slash) of an image's final file system. Use as a context manager."""

    def __init__(self, layers: Iterable[Layer]) -> None:
        self._stack = ExitStack()
        self._members: dict[str, tuple[tarfile.TarFile, tarfile.TarInfo]] = {}
        for layer in layers:
            archive = self._stack.enter_context(tarfile.open(layer.path))  # noqa: SIM115  # the stack closes it
            self._apply(archive)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path, sorted."""
        return tuple(sorted(self._members))

    def files(self, below: str = "") -> Iterator[str]:
        """Regular files below a directory, sorted."""
        prefix = f"{below.strip('/')}/" if below.strip("/") else ""
        return (path for path in self.paths if path.startswith(prefix) and self._members[path][1].isreg())

    def header(self, path: str) -> tarfile.TarInfo:
        """Mode, owner, type and size of a path. Raises `KeyError` where there is none."""
        return self._members[path.strip("/")][1]

    def read(self, path: str) -> bytes:
        """Content of a file, symbolic links followed. Raises `KeyError` where there is no such file."""
        name = self.resolve(path)
        archive, member = self._members[name]
        stream = archive.extractfile(member)
        if stream is None:
            raise KeyError(f"{path} is no file of the image")
        return stream.read()

    def resolve(self, path: str) -> str:
        """The path that `path` means once links in any of its parts are followed. Raises `KeyError` for a loop."""
        pending = path.strip("/").split("/")
        done: list[str] = []
        for _ in range(200):
            if not pending:
                return "/".join(done)
            part = pending.pop(0)
            name = "/".join((*done, part))
            member = self._members[name][1] if name in self._members else None
            if member is not None and member.issym():
                target = (
                    member.linkname if member.linkname.startswith("/") else posixpath.join("/", *done, member.linkname)
                )
                pending = [*posixpath.normpath(target).strip("/").split("/"), *pending]
                done = []
            else:
                done.append(part)
        raise KeyError(f"{path} leads through too many links")

    def extract(self, names: Iterable[str], target: Path) -> None:
        """Write some files below `target`, at their paths."""
        for name in names:
            place = target / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(self.read(name))

    def _apply(self, archive: tarfile.TarFile) -> None:
        members = {canonical(member.name): member for member in archive.getmembers()}
        for name in members:
            directory, _, base = name.rpartition("/")
            if base == _OPAQUE:
                self._forget(directory, itself=False)
            elif base.startswith(_WHITEOUT):
                self._forget(posixpath.join(directory, base.removeprefix(_WHITEOUT)), itself=True)
        for name, member in members.items():
            if name and not posixpath.basename(name).startswith(_WHITEOUT):
                self._members[name] = (archive, member)

    def _forget(self, path: str, *, itself: bool) -> None:
        doomed = [name for name in self._members if name.startswith(f"{path}/") or (itself and name == path)]
        for name in doomed:
            del self._members[name]
