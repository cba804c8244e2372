"""What a hardened container looks like from inside. Its source is run there by `exec`, as the service's user.

Prints one JSON document. Standard library only, no import of ours, nothing left behind.
Arguments: the model's directory, then names of tools to look for.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import json
import os
import stat
import sys
from typing import Any

STATUS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Uid", "Gid", "Groups")
PROBED = ("/", "/etc", "/opt", "/opt/assay", "/usr", "/var", "/var/tmp", "/run", "/root", "/home", "/dev", "/tmp")
PROGRAMS = ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/assay/bin")


def status() -> dict[str, str]:
    """Fields of /proc/1/status."""
    with open("/proc/1/status", encoding="ascii", errors="replace") as stream:
        fields = dict(line.rstrip("\n").partition(":\t")[::2] for line in stream)
    return {name: fields.get(name, "").strip() for name in STATUS}


def write_attempt(directory: str) -> str:
    """The errno's name for creating a file there.

    `written` where it worked, `absent` where there is no such directory.
    """
    path = os.path.join(directory, ".assay-probe")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileNotFoundError:
        return "absent"
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, "unknown")
    os.unlink(path)
    return "written"


def execution_attempt(directory: str) -> str:
    """The errno's name for running a program that lies there; `executed` where it ran."""
    path = os.path.join(directory, ".assay-program")
    try:
        with open(path, "w", encoding="ascii") as stream:
            stream.write(f"#!{sys.executable}\n")
        os.chmod(path, 0o700)
        child = os.posix_spawn(path, [path], {})
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, "unknown")
    else:
        os.waitpid(child, 0)
        return "executed"
    finally:
        if os.path.exists(path):
            os.unlink(path)


def mounts() -> list[dict[str, Any]]:
    """Options of the mounts at / and /tmp."""
    found = []
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as stream:
        for line in stream:
            fields = line.split()
            if fields[4] in ("/", "/tmp"):
                found.append(
                    {"path": fields[4], "kind": fields[fields.index("-") + 1], "options": sorted(fields[5].split(","))}
                )
    return found


def model_files(directory: str) -> list[dict[str, Any]]:
    """Path, size, SHA-256, mode and owner of every file below the model's directory."""
    found = []
    for place, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(place, name)
            facts = os.lstat(path)
            kind = "file" if stat.S_ISREG(facts.st_mode) else "other"
            found.append(
                {
                    "path": os.path.relpath(path, directory),
                    "kind": kind,
                    "bytes": facts.st_size,
                    "mode": f"{stat.S_IMODE(facts.st_mode):04o}",
                    "uid": facts.st_uid,
                    "gid": facts.st_gid,
                    "sha256": sha256(path) if kind == "file" else None,
                }
            )
    return sorted(found, key=lambda item: str(item["path"]))


def sha256(path: str) -> str:
    """SHA-256 of a file, read in chunks."""
    state = hashlib.sha256()
    with open(path, "rb") as stream:
        while chunk := stream.read(1 << 20):
            state.update(chunk)
    return state.hexdigest()


def tools(names: list[str]) -> list[str]:
    """Which of the named tools lie in a directory of programs, and whether pip can be imported."""
    found = [f"{place}/{name}" for place in PROGRAMS for name in names if os.path.lexists(f"{place}/{name}")]
    if importlib.util.find_spec("pip") is not None:
        found.append("python module pip")
    return sorted(found)


def main(arguments: list[str]) -> None:
    """Print the whole view."""
    view = {
        "status": status(),
        "uid": os.getuid(),
        "gid": os.getgid(),
        "writes": [{"path": path, "result": write_attempt(path)} for path in PROBED],
        "execution_in_tmp": execution_attempt("/tmp"),
        "mounts": mounts(),
        "tools": tools(arguments[1:]),
        "model": model_files(arguments[0]) if arguments[0] else [],
    }
    print(json.dumps(view, sort_keys=True))


if __name__ == "__main__":
    main(sys.argv[1:])
