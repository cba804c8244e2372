"""Locks: every wheel of an image by name, version and hash, in pip's own format; a pin without a hash does not load.

`resolve` asks pip what it would install and writes the answer down; `read` is what everything else uses. One
requirement file serves all variants: they differ in which build of torch pip is shown. Not covered: fetching
(`wheelhouse`).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from qualification.container.faults import ContainerFault, FaultCode

PYTHON_VERSION = "3.11"  # the base's interpreter, whatever runs the harness
PLATFORMS = (
    "manylinux_2_28_x86_64",
    "manylinux_2_27_x86_64",
    "manylinux_2_25_x86_64",
    "manylinux_2_24_x86_64",
    "manylinux_2_18_x86_64",
    "manylinux_2_17_x86_64",
    "manylinux2014_x86_64",
    "manylinux_2_12_x86_64",
    "manylinux2010_x86_64",
    "manylinux_2_5_x86_64",
    "manylinux1_x86_64",
)
_LINE = re.compile(r"([A-Za-z0-9._-]+)==([^\s;]+)((?:\s+--hash=sha256:[0-9a-f]{64})+)")


@dataclass(frozen=True, kw_only=True)
class LockedWheel:
    """One distribution and the SHA-256 of each wheel that may be installed for it."""

    name: str
    version: str
    hashes: tuple[str, ...]


def read(path: Path) -> tuple[LockedWheel, ...]:
    """The wheels of a lock, in its order.

    Raises:
        ContainerFault: `lock_incomplete` for a line that is no exact version with a hash, or an empty lock.
    """
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    wheels = tuple(_wheel(line, path) for line in lines if line)
    if not wheels:
        raise ContainerFault(
            FaultCode.LOCK_INCOMPLETE, f"{path.name} locks nothing; run `python -m qualification.container lock`"
        )
    return wheels


def _wheel(line: str, path: Path) -> LockedWheel:
    match = _LINE.fullmatch(line)
    if match is None:
        raise ContainerFault(
            FaultCode.LOCK_INCOMPLETE, f"{path.name}: {line[:80]!r} is not name==version --hash=sha256:…; lock it again"
        )
    hashes = tuple(re.findall(r"sha256:([0-9a-f]{64})", match[3]))
    return LockedWheel(name=canonicalize_name(match[1]), version=match[2], hashes=hashes)


def resolve(requirements: Sequence[str], *, public_torch: bool) -> str:
    """The text of a lock for what pip would install for the base's interpreter.

    Args:
        public_torch: ignore local wheel directories, so that torch is the build of the public index with its CUDA
        parts.

    Raises:
        ContainerFault: `lock_incomplete` where pip cannot resolve.
    """
    wanted = [line.replace("torch==", "torch===") if public_torch else line for line in requirements]
    environment = {**os.environ, "PIP_FIND_LINKS": ""} if public_torch else dict(os.environ)
    with tempfile.TemporaryDirectory() as place:
        report = Path(place) / "report.json"
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--dry-run",
            "--quiet",
            "--ignore-installed",
            "--report",
            str(report),
            *target_options(),
            "--target",
            place,
            *wanted,
        ]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise ContainerFault(
                FaultCode.LOCK_INCOMPLETE, f"pip could not resolve the requirements: {done.stderr.strip()[-400:]}"
            )
        return _render(json.loads(report.read_bytes())["install"])


def target_options() -> list[str]:
    """pip's options that mean: wheels for the base's interpreter, from whatever interpreter pip runs in."""
    return [
        "--only-binary",
        ":all:",
        "--python-version",
        PYTHON_VERSION,
        "--implementation",
        "cp",
        *(f"--platform={name}" for name in PLATFORMS),
    ]


def _render(installed: Sequence[dict[str, Any]]) -> str:
    rows = sorted((canonicalize_name(item["metadata"]["name"]), item) for item in installed)
    lines = ["# Written by `python -m qualification.container lock`; do not edit."]
    for name, item in rows:
        digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
        lines.append(f"{name}=={item['metadata']['version']} \\\n    --hash=sha256:{digest}")
    return "\n".join(lines) + "\n"
