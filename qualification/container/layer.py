"""Layers as deterministic tar archives: same files, same bytes, whatever clock, order or account made them.

Normalising an archive sorts its members, sets one modification time, keeps only numeric owners, and drops what a
builder adds by itself (extended headers, access times, user names). The content, mode, owner and type of each member
stay as they are.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_KEPT_PAX = ("SCHILY.xattr.",)


@dataclass(frozen=True, kw_only=True)
class Layer:
    """An uncompressed layer on disk. `digest` is both its blob digest and its diff id, since nothing is compressed."""

    path: Path
    digest: str
    size: int


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A member to write: its header and, for a regular file, its bytes."""

    header: tarfile.TarInfo
    content: bytes | None = None


def normalise(source: Path, target: Path, *, epoch: int) -> Layer | None:
    """Rewrite the layer `source` as `target`.

    None (and no file) where the layer holds nothing but directories' times.
    """
    with tarfile.open(source) as archive:
        members = {canonical(member.name): member for member in archive.getmembers()}
        if not any(name for name in members):
            return None
        with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as out:
            for name in sorted(members):
                member = members[name]
                content = archive.extractfile(member) if member.isreg() else None
                out.addfile(plain_header(member, name, epoch), content)
    return measured(target)


def write(entries: Iterable[Entry], target: Path, *, epoch: int) -> Layer:
    """Write entries as a deterministic layer."""
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as out:
        for entry in sorted(entries, key=lambda entry: canonical(entry.header.name)):
            header = plain_header(entry.header, canonical(entry.header.name), epoch)
            out.addfile(header, io.BytesIO(entry.content) if entry.content is not None else None)
    return measured(target)


def canonical(name: str) -> str:
    """A member's path without a leading `./` or `/` and without a trailing slash; empty for the root."""
    while name.startswith(("./", "/")):
        name = name.partition("/")[2]
    return "" if name == "." else name.rstrip("/")


def plain_header(member: tarfile.TarInfo, name: str, epoch: int) -> tarfile.TarInfo:
    """A header with the facts of `member` that matter, and no others."""
    header = tarfile.TarInfo(name or ".")
    header.size = member.size if member.isreg() else 0
    header.mode = member.mode & 0o7777
    header.type = member.type
    header.linkname = canonical(member.linkname) if member.islnk() else member.linkname
    header.uid, header.gid = member.uid, member.gid
    header.devmajor, header.devminor = member.devmajor, member.devminor
    header.mtime = epoch
    header.pax_headers = _kept(member.pax_headers)
    return header


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in sorted(headers.items()) if key.startswith(_KEPT_PAX)}


def measured(path: Path) -> Layer:
    """Digest and size of a layer that lies on disk."""
    with path.open("rb") as stream:
        digest, size = digest_stream(stream)
    return Layer(path=path, digest=digest, size=size)


def digest_stream(stream: IO[bytes]) -> tuple[str, int]:
    """`sha256:…` and the number of bytes of a stream, read in chunks."""
    state, size = hashlib.sha256(), 0
    while chunk := stream.read(1 << 20):
        state.update(chunk)
        size += len(chunk)
    return f"sha256:{state.hexdigest()}", size
