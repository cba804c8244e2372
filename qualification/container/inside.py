"""The view from inside a running container: by our probe where the image has an interpreter, else by the host's /proc.

The probe is not part of the image; its source is handed to the image's own interpreter. Without one, the main process
is looked at from the host; what cannot be seen that way (write attempts, hashes) is None, and the gate says so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import docker
from docker.models.containers import Container

from qualification.container import inside_probe, layout

INTERPRETERS = (f"{layout.PREFIX}/bin/python", "/usr/bin/python3", "/usr/local/bin/python3", "python3")


def inside(container: Container) -> dict[str, Any]:
    """The probe's document with `method` `exec`, or what /proc shows with `method` `host_proc`."""
    source = Path(inside_probe.__file__).read_text(encoding="utf-8")
    for interpreter in INTERPRETERS:
        view = _executed(
            container, [interpreter, "-I", "-S", "-c", source, model_directory(container) or "", *sorted(layout.TOOLS)]
        )
        if view is not None:
            return {"method": "exec", **view}
    return {"method": "host_proc", **_from_host(container)}


def model_directory(container: Container) -> str | None:
    """Where the image says that its model lies (`ASSAY_MODEL`)."""
    pairs = (entry.partition("=") for entry in container.attrs["Config"]["Env"] or ())
    return next((value for name, _, value in pairs if name == "ASSAY_MODEL"), None)


def _executed(container: Container, command: list[str]) -> dict[str, Any] | None:
    try:
        answer = container.exec_run(command, demux=True)
        view: dict[str, Any] = json.loads(answer.output[0] or b"")
    except (docker.errors.APIError, ValueError, TypeError):
        return None
    return view if answer.exit_code == 0 else None


def _from_host(container: Container) -> dict[str, Any]:
    container.reload()
    process = Path("/proc") / str(container.attrs["State"]["Pid"])
    empty: dict[str, Any] = {
        "status": None,
        "uid": None,
        "gid": None,
        "writes": None,
        "execution_in_tmp": None,
        "tools": None,
        "model": None,
    }
    try:
        fields = dict(
            line.partition(":\t")[::2] for line in (process / "status").read_text(encoding="utf-8").splitlines()
        )
        mounts = (process / "mountinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {**empty, "mounts": None}
    status = {name: fields.get(name, "").strip() for name in inside_probe.STATUS}
    owner = {"uid": int(status["Uid"].split()[0]), "gid": int(status["Gid"].split()[0])}
    return {**empty, **owner, "status": status, "mounts": [found for line in mounts if (found := _mount(line.split()))]}


def _mount(fields: list[str]) -> dict[str, Any] | None:
    if fields[4] not in ("/", "/tmp"):
        return None
    return {"path": fields[4], "kind": fields[fields.index("-") + 1], "options": sorted(fields[5].split(","))}
