"""How a subject's container runs, and what the engine says of it once it does: the view from outside.

The settings are the ones under which the evidence was made; nothing here judges them (the gate `container.hardening`
does). Source: the engine's create and inspect calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import docker
from docker.models.containers import Container

from qualification.container import layout
from qualification.container.docker_engine import reason
from qualification.container.faults import ContainerFault, FaultCode

MIB = 1 << 20
LABEL = "assay.qualification"


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """Limits of a run. `read_only` False exists for one purpose: to see where an image writes that dies without."""

    memory_bytes: int = 4 * 1024 * MIB
    pids: int = 512
    tmpfs: str = "rw,noexec,nosuid,nodev,size=64m"
    read_only: bool = True
    port: int = layout.PORT
    gpus: bool = False
    token: str = field(default_factory=lambda: uuid4().hex)  # tells the containers of one run from any others


def create(client: docker.DockerClient, image: str, settings: RunSettings) -> Container:
    """Create (not start) the container.

    Raises:
        ContainerFault: `start_failed` where the engine refuses.
    """
    try:
        return client.containers.create(
            image,
            detach=True,
            read_only=settings.read_only,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            tmpfs={"/tmp": settings.tmpfs},  # inside the container
            pids_limit=settings.pids,
            mem_limit=settings.memory_bytes,
            memswap_limit=settings.memory_bytes,
            ports={f"{settings.port}/tcp": ("127.0.0.1", None)},
            labels={LABEL: settings.token},
            device_requests=[docker.types.DeviceRequest(count=-1, capabilities=[["gpu"]])] if settings.gpus else None,
        )
    except docker.errors.DockerException as error:
        raise ContainerFault(
            FaultCode.START_FAILED, f"the engine refused to create a container of {image}: {reason(error)}"
        ) from error


def outside(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """What `inspect` says, reduced to what hardening is about."""
    host = attributes["HostConfig"]
    return {
        "read_only": bool(host["ReadonlyRootfs"]),
        "privileged": bool(host["Privileged"]),
        "cap_add": sorted(host["CapAdd"] or ()),
        "cap_drop": sorted(host["CapDrop"] or ()),
        "security_options": sorted(host["SecurityOpt"] or ()),
        "tmpfs": [
            {"path": path, "options": sorted(options.split(","))}
            for path, options in sorted((host["Tmpfs"] or {}).items())
        ],
        "pids_limit": host["PidsLimit"] or 0,
        "memory_bytes": host["Memory"],
        "memory_swap_bytes": host["MemorySwap"],
        "published": published(attributes),
        "mounts": sorted(mount["Destination"] for mount in attributes["Mounts"] if mount["Type"] != "tmpfs"),
        "devices": sorted(device["PathInContainer"] for device in host["Devices"] or ()),
        "host_namespaces": [
            name for name in ("NetworkMode", "PidMode", "IpcMode", "UTSMode") if host.get(name) == "host"
        ],
        "user": attributes["Config"]["User"],
        "restart_count": attributes["RestartCount"],
        "oom_killed": bool(attributes["State"]["OOMKilled"]),
    }


def published(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Published ports as they were asked for: container port and host address."""
    bindings = attributes["HostConfig"]["PortBindings"] or {}
    return [
        {"port": int(name.partition("/")[0]), "host": binding["HostIp"]}
        for name, entries in sorted(bindings.items())
        for binding in entries or ()
    ]


def address(container: Container, settings: RunSettings) -> tuple[str, int] | None:
    """Loopback address of the running container's port; None while the engine has not published it."""
    container.reload()
    entries = container.attrs["NetworkSettings"]["Ports"].get(f"{settings.port}/tcp") or []
    return next(((entry["HostIp"], int(entry["HostPort"])) for entry in entries), None)
