"""What exactly differs between two builds of one commit, layer by layer, member by member; nothing, if all is well.

This is our own list, made from headers and content hashes; `diffoscope`, where installed, can be pointed at the two
layouts for more.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qualification.container.layer import canonical
from qualification.container.oci import Image

MOST = 200


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One thing that differs: in which step's layer (or document), which path, and how."""

    place: str
    path: str
    what: str


def compare(first: Image, second: Image) -> tuple[Difference, ...]:
    """Differences of two images, at most `MOST` of them."""
    return tuple(found for found, _ in zip(_differences(first, second), range(MOST), strict=False))


def _differences(first: Image, second: Image) -> Iterator[Difference]:
    steps = [entry["created_by"] for entry in json.loads(first.config.content)["history"]]
    if len(first.layers) != len(second.layers):
        yield Difference(place="manifest", path="layers", what=f"{len(first.layers)} and {len(second.layers)} layers")
    for number, (one, other) in enumerate(zip(first.layers, second.layers, strict=False)):
        if one.digest != other.digest:
            yield from _layers(steps[number] if number < len(steps) else str(number), one.path, other.path)
    yield from _documents("config", json.loads(first.config.content), json.loads(second.config.content))
    yield from _documents("manifest", _annotations(first), _annotations(second))


def _annotations(image: Image) -> Mapping[str, Any]:
    annotations: Mapping[str, Any] = json.loads(image.manifest.content)["annotations"]
    return annotations


def _documents(place: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[Difference]:
    for key in sorted({*one, *other}):
        if one.get(key) != other.get(key):
            yield Difference(place=place, path=key, what="differs" if key in one and key in other else "is in one only")


def _layers(place: str, one: Path, other: Path) -> Iterator[Difference]:
    left, right = _members(one), _members(other)
    for path in sorted({*left, *right}):
        if path not in left or path not in right:
            yield Difference(place=place, path=path, what="is in one only")
            continue
        for field in left[path]:
            if left[path][field] != right[path][field]:
                yield Difference(place=place, path=path, what=f"{field}: {left[path][field]} and {right[path][field]}")


def _members(path: Path) -> dict[str, dict[str, str]]:
    with tarfile.open(path) as archive:
        return {canonical(member.name): _facts(archive, member) for member in archive.getmembers()}


def _facts(archive: tarfile.TarFile, member: tarfile.TarInfo) -> dict[str, str]:
    stream = archive.extractfile(member) if member.isreg() else None
    content = hashlib.sha256(stream.read()).hexdigest() if stream else ""
    return {
        "type": str(member.type),
        "mode": oct(member.mode),
        "owner": f"{member.uid}:{member.gid}",
        "link": member.linkname,
        "time": str(member.mtime),
        "content": content,
    }
