"""The metadata of the Python distributions inside a running container, copied out by its own interpreter.

What is read is what the service's interpreter would import, so it works for any image that has one. Only metadata
leaves; the program that collects it is no part of the image and writes nothing there.
"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Final

import docker
from docker.models.containers import Container

from qualification.container.inside import INTERPRETERS

_COLLECT: Final = """
import os, sys, tarfile
seen = set()
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
    for place in sys.path:
        for name in sorted(os.listdir(place)) if os.path.isdir(place) else ():
            if name.endswith(".dist-info") and name not in seen:
                seen.add(name)
                archive.add(os.path.join(place, name), arcname=name)
"""


def metadata_of(container: Container, place: Path) -> Path | None:
    """A directory below `place` that holds a `*.dist-info` for each distribution; None where nothing could be read."""
    target = place / "distributions"
    for interpreter in INTERPRETERS:
        content = _collected(container, interpreter)
        if content is None:
            continue
        try:
            with tarfile.open(fileobj=io.BytesIO(content)) as members:
                members.extractall(target, filter="data")
        except (tarfile.TarError, OSError):
            return None
        return target if any(target.glob("*.dist-info")) else None
    return None


def _collected(container: Container, interpreter: str) -> bytes | None:
    try:
        answer = container.exec_run([interpreter, "-I", "-c", _COLLECT], demux=True)
    except docker.errors.APIError:
        return None
    content: bytes | None = answer.output[0]
    return content if answer.exit_code == 0 else None
