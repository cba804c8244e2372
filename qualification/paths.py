"""Where things lie: names inside a bundle, packaged data, and the walk over a bundle that follows nothing.

A bundle path is relative, in POSIX spelling, of plain ASCII characters, so that it means one file on every system.
Nothing here reads the content of a file.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from qualification.errors import BundleError

RUN = "run.json"
POLICY = "policy.json"
PINS = "pins.json"
WORKLOAD = "workload.json"
IDENTITY = "identity.json"
LICENCES = "licences.json"
ENVIRONMENT = "environment.json"
PHASES = "phases.json"
TELEMETRY = "telemetry.jsonl"
GATES = "gates.json"
SUMMARY = "summary.json"
REPORT = "report.html"
MANIFEST = "manifest.json"
STATEMENT = "statement.dsse.json"
SAMPLES_DIRECTORY = "samples"
AUDIO_DIRECTORY = "audio"
LAYERS_DIRECTORY = "layers"
ABANDONED_DIRECTORY = "abandoned"
JOURNAL_DIRECTORY = "journal"
AUDIO_LAYERS = "layers/audio-"

_SEGMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_PACKAGE = Path(__file__).resolve().parent


@dataclass(frozen=True, kw_only=True)
class Walked:
    """What lies below a bundle's root. `irregular` names symbolic links, devices, pipes and sockets."""

    files: tuple[str, ...]
    irregular: tuple[str, ...]


def check_bundle_path(path: str) -> str:
    """Return `path` when it names a place inside a bundle.

    Raises:
        BundleError: absolute, empty, with `..`, `.`, a backslash or a character outside `A-Za-z0-9._-`.
    """
    segments = path.split("/")
    if len(path) > 512 or not all(_SEGMENT.fullmatch(segment) for segment in segments):
        raise BundleError(f"path {path!r} is no plain relative path inside a bundle; use A-Z a-z 0-9 . _ - and /")
    return path


def in_layer(path: str) -> bool:
    """Whether a bundle path was added after sealing, and so is no business of the manifest."""
    return path.startswith(f"{LAYERS_DIRECTORY}/")


def locate(root: Path, path: str) -> Path:
    """The regular file `path` below `root`, reached through real directories only.

    Raises:
        BundleError: where the path leaves the bundle, is a symbolic link or special, or does not exist.
    """
    place = root
    for segment in check_bundle_path(path).split("/"):
        place = place / segment
        if place.is_symlink():
            raise BundleError(f"{path}: {segment} is a symbolic link; a bundle holds regular files only")
    if not place.exists():
        raise BundleError(f"{path}: no such file in the bundle; it is incomplete")
    if not stat.S_ISREG(place.lstat().st_mode):
        raise BundleError(f"{path}: not a regular file; a bundle holds regular files only")
    return place


def walk(root: Path) -> Walked:
    """Every entry below `root`, sorted, without following a link. An empty directory counts as irregular."""
    files: list[str] = []
    irregular: list[str] = []
    _walk_into(root, "", files, irregular)
    return Walked(files=tuple(sorted(files)), irregular=tuple(sorted(irregular)))


def _walk_into(directory: Path, prefix: str, files: list[str], irregular: list[str]) -> None:
    with os.scandir(directory) as entries:
        found = list(entries)
    if prefix and not found:
        irregular.append(prefix)
    for entry in found:
        name = prefix + entry.name
        if entry.is_symlink():
            irregular.append(name)
        elif entry.is_dir(follow_symlinks=False):
            _walk_into(directory / entry.name, f"{name}/", files, irregular)
        elif entry.is_file(follow_symlinks=False):
            files.append(name)
        else:
            irregular.append(name)


def data_file(name: str) -> Path:
    """A data file that ships with the package, such as `policy.json`."""
    return _PACKAGE / "data" / name


def schema_directory() -> Path:
    """The directory of `<name>.schema.json` files: inside an installed package, or at the root of a checkout."""
    packaged = _PACKAGE / "schemas"
    return packaged if packaged.is_dir() else _PACKAGE.parent / "schemas"
