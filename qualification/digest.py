"""Digests: an algorithm and a value together, and the difference between two trees of them.

A mismatch is never a bare "no": `compare` reports what is extra, missing and different, by name.
Two algorithms are enough here: SHA-256, and Git's blob SHA-1, in which some public pins are given.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from qualification.errors import InputError

SHA256: Final = "sha256"
GIT_BLOB_SHA1: Final = "git-blob-sha1"
_HEX_LENGTH: Final = {SHA256: 64, GIT_BLOB_SHA1: 40}
_CHUNK = 1 << 20


@dataclass(frozen=True, kw_only=True, order=True)
class Digest:
    """A checked pair of algorithm and lower-case hexadecimal value.

    Raises:
        InputError: for an unknown algorithm or a value of another length or alphabet.
    """

    algorithm: str
    value: str

    def __post_init__(self) -> None:
        length = _HEX_LENGTH.get(self.algorithm)
        if length is None:
            raise InputError(f"digest algorithm {self.algorithm!r} is unknown; use one of {', '.join(_HEX_LENGTH)}")
        if not re.fullmatch(rf"[0-9a-f]{{{length}}}", self.value):
            raise InputError(f"{self.algorithm} value {self.value!r} is not {length} lower-case hexadecimal digits")

    def __str__(self) -> str:
        return f"{self.algorithm}:{self.value}"


@dataclass(frozen=True, kw_only=True)
class TreeDifference:
    """How two maps of path -> digest differ; all empty when they agree."""

    extra: tuple[str, ...]
    missing: tuple[str, ...]
    different: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        return not (self.extra or self.missing or self.different)

    def __str__(self) -> str:
        parts = (("extra", self.extra), ("missing", self.missing), ("different", self.different))
        return "; ".join(f"{name}: {', '.join(paths)}" for name, paths in parts if paths) or "no difference"


def sha256_bytes(data: bytes) -> str:
    """SHA-256 of `data` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's content in hexadecimal, read in chunks."""
    return digest_file(path, SHA256).value


def digest_file(path: Path, algorithm: str) -> Digest:
    """Digest of a file's content, read in chunks. Raises `OSError` where it cannot be read."""
    state = hashlib.sha256() if algorithm == SHA256 else hashlib.sha1(usedforsecurity=False)
    with path.open("rb") as stream:
        if algorithm == GIT_BLOB_SHA1:
            state.update(f"blob {path.stat().st_size}\0".encode())
        while chunk := stream.read(_CHUNK):
            state.update(chunk)
    return Digest(algorithm=algorithm, value=state.hexdigest())


def compare(*, found: Mapping[str, Digest], expected: Mapping[str, Digest]) -> TreeDifference:
    """What is extra, missing and different in `found`, each sorted by path."""
    shared = found.keys() & expected.keys()
    return TreeDifference(
        extra=tuple(sorted(found.keys() - expected.keys())),
        missing=tuple(sorted(expected.keys() - found.keys())),
        different=tuple(sorted(path for path in shared if found[path] != expected[path])),
    )
