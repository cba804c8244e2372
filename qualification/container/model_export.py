"""The image's own model files, copied out of a container, so that identity is taken from what ran."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import IO

import docker
from docker.models.containers import Container

from qualification.container import inside
from qualification.container.faults import ContainerFault, FaultCode


def exported(container: Container, place: Path) -> Path | None:
    """The image's own model files, copied out so that their identity is taken from what ran."""
    directory = inside.model_directory(container)
    if directory is None:
        return None
    archive = place / "model.tar"
    with archive.open("wb") as stream:
        _drain(container, directory, stream)
    with tarfile.open(archive) as members:
        members.extractall(place, filter="data")
    archive.unlink()
    return place / Path(directory).name


def _drain(container: Container, directory: str, stream: IO[bytes]) -> None:
    try:
        pieces, _ = container.get_archive(directory)
    except docker.errors.NotFound as error:
        raise ContainerFault(
            FaultCode.IMAGE_MALFORMED, f"ASSAY_MODEL names {directory}, which the image lacks; build it again"
        ) from error
    for piece in pieces:
        stream.write(piece)
