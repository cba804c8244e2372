"""Whether a Docker engine can be used here, and what it is. No engine is a fact with a reason, not a failure.

Source of the checks: the engine's own `/info` and `/version`. Not covered: starting a daemon, which is the caller's
business (CI starts one; a laptop has one).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import docker
import requests

from qualification.container.faults import ContainerFault, FaultCode

CALL_SECONDS = 600
DEFAULT_HOST = "unix:///var/run/docker.sock"


@dataclass(frozen=True, kw_only=True)
class EngineFacts:
    """What the engine says of itself, as recorded."""

    version: str
    api_version: str
    storage_driver: str
    runtime: str
    cgroup_version: str
    security_options: tuple[str, ...]
    architecture: str
    kernel: str

    def to_json(self) -> dict[str, Any]:
        """The object that `container.json` holds."""
        return {**asdict(self), "security_options": list(self.security_options)}


@contextmanager
def docker_engine() -> Iterator[docker.DockerClient]:
    """A client of the engine that the environment names, closed afterwards.

    Raises:
        ContainerFault: `no_engine` where no daemon answers, with the reason.
    """
    try:
        _knock(os.environ.get("DOCKER_HOST") or DEFAULT_HOST)
        client = docker.from_env(timeout=CALL_SECONDS)
    except (OSError, docker.errors.DockerException, requests.exceptions.RequestException) as error:
        raise ContainerFault(
            FaultCode.NO_ENGINE, f"no Docker engine answers here ({reason(error)}); install docker.io and start dockerd"
        ) from error
    try:
        yield client
    finally:
        client.close()


def _knock(host: str) -> None:
    """Connect to a socket file once: the client's own attempt would leave a socket open. Raises `OSError`."""
    scheme, _, path = host.partition("://")
    if scheme == "unix":
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(path)


def facts(client: docker.DockerClient) -> EngineFacts:
    """Read `/info` and `/version`."""
    info = client.info()
    version = client.version()
    return EngineFacts(
        version=str(version["Version"]),
        api_version=str(version["ApiVersion"]),
        storage_driver=str(info["Driver"]),
        runtime=str(info["DefaultRuntime"]),
        cgroup_version=str(info.get("CgroupVersion", "unknown")),
        security_options=tuple(sorted(info.get("SecurityOptions") or ())),
        architecture=str(info["Architecture"]),
        kernel=str(info["KernelVersion"]),
    )


def reason(error: BaseException) -> str:
    """The innermost cause of an engine's error, one line, without addresses of objects."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__  # type: ignore[assignment]  # the loop's condition excludes None
    text = str(error).splitlines()
    return text[0][:200] if text else type(error).__name__
