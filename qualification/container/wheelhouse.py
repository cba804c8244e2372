"""A directory of wheels that is exactly a lock: each wheel present, each with a locked hash, nothing besides.

`fill` lets pip download what is missing (from wherever the machine's pip is told to look); `check` believes only bytes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from qualification.container.faults import ContainerFault, FaultCode
from qualification.container.lock import LockedWheel, read, target_options
from qualification.digest import sha256_file


@dataclass(frozen=True, kw_only=True)
class Wheel:
    """A wheel file whose hash is a locked one."""

    name: str
    version: str
    path: Path
    sha256: str


def fill(directory: Path, lock: Path) -> tuple[Wheel, ...]:
    """Download what `directory` lacks of `lock` and check what lies there afterwards.

    Raises:
        ContainerFault: `wheel_missing` where pip cannot get one, `wheel_hash_differs` for other bytes than locked.
    """
    directory.mkdir(parents=True, exist_ok=True)
    locked = read(lock)
    present = {wheel.name for wheel in _found(directory, locked)}
    if any(item.name not in present for item in locked):
        _download(directory, lock, any(item.name == "torch" and "+" not in item.version for item in locked))
    return check(directory, locked)


def check(directory: Path, locked: Sequence[LockedWheel]) -> tuple[Wheel, ...]:
    """The wheels of the lock in `directory`, sorted by name.

    Raises:
        ContainerFault: as `fill`.
    """
    found = {wheel.name: wheel for wheel in _found(directory, locked)}
    for item in locked:
        wheel = found.get(item.name)
        if wheel is None:
            raise ContainerFault(
                FaultCode.WHEEL_MISSING,
                f"no wheel of {item.name} {item.version} in the wheelhouse; download it or lock again",
            )
        if wheel.sha256 not in item.hashes:
            raise ContainerFault(
                FaultCode.WHEEL_HASH_DIFFERS,
                f"{wheel.path.name} has SHA-256 {wheel.sha256}, the lock says {' or '.join(item.hashes)}; "
                "delete it and download again",
            )
    return tuple(sorted(found.values(), key=lambda wheel: wheel.name))


def _found(directory: Path, locked: Iterable[LockedWheel]) -> Iterable[Wheel]:
    wanted = {item.name: item for item in locked}
    for path in sorted(directory.glob("*.whl")):
        try:
            name, version, _, _ = parse_wheel_filename(path.name)
        except InvalidWheelFilename:
            continue
        item = wanted.get(canonicalize_name(name))
        if item is not None and version == Version(item.version):
            yield Wheel(name=item.name, version=item.version, path=path, sha256=sha256_file(path))


def _download(directory: Path, lock: Path, public_torch: bool) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--require-hashes",
        *target_options(),
        "--requirement",
        str(lock),
        "--dest",
        str(directory),
    ]
    environment = {**os.environ, "PIP_FIND_LINKS": ""} if public_torch else dict(os.environ)
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        differs = "DO NOT MATCH THE HASHES" in done.stderr
        code = FaultCode.WHEEL_HASH_DIFFERS if differs else FaultCode.WHEEL_MISSING
        raise ContainerFault(code, f"pip could not fill the wheelhouse from {lock.name}: {done.stderr.strip()[-400:]}")
