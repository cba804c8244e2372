"""One hardened container for as long as a block lasts; and why one that dies on start does so."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import docker
from docker.models.containers import Container

from qualification.container import life
from qualification.container.faults import ContainerFault, FaultCode
from qualification.container.hardening import RunSettings, create
from qualification.container.reference import ImageReference

WRITE_WATCH_SECONDS = 5.0
_GRACE_SECONDS = 35


@contextmanager
def contained(client: docker.DockerClient, reference: ImageReference, settings: RunSettings) -> Iterator[Container]:
    """A created container, stopped and removed in the end. Raises `ContainerFault` (`start_failed`)."""
    container = create(client, str(reference), settings)
    try:
        yield container
    finally:
        with contextlib.suppress(docker.errors.NotFound):
            container.stop(timeout=_GRACE_SECONDS)
            container.remove(force=True, v=True)


def started(
    client: docker.DockerClient, reference: ImageReference, container: Container, settings: RunSettings
) -> tuple[str, dict[str, Any]]:
    """Start, and where it dies, look whether it dies of its read-only root."""
    try:
        return life.start(container, settings)
    except ContainerFault as fault:
        written = _writes(client, reference, settings) if fault.code is FaultCode.DIED_ON_START else []
        if written:
            raise ContainerFault(
                FaultCode.WRITES_TO_ROOT,
                f"the image dies on a read-only root; given a writable one it writes {', '.join(written[:5])}; "
                "write to /tmp or nowhere",
            ) from fault
        raise


def _writes(client: docker.DockerClient, reference: ImageReference, settings: RunSettings) -> list[str]:
    """Paths that the image changes on a writable root within a few seconds."""
    with contained(client, reference, replace(settings, read_only=False)) as container:
        with contextlib.suppress(docker.errors.APIError):
            container.start()
            time.sleep(WRITE_WATCH_SECONDS)
        return sorted(
            change["Path"]
            for change in container.diff() or ()
            if not change["Path"].startswith(("/tmp", "/dev", "/proc"))
        )
