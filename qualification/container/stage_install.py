"""First step of the image build: refuse a base by tag, then install the locked wheels, offline and by hash.

Runs inside the build with the base's interpreter, as a plain script: standard library only, no import of ours, so
that a change of the harness does not repeat the installation. pip itself comes as a locked wheel and is used from its
archive.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

BUILD = Path("/build")
PREFIX = Path("/opt/assay")
TOOLS = BUILD / "tools"


def main() -> None:
    """Check the base, then install build tools beside and runtime wheels into the image's environment."""
    check_base(os.environ.get("BASE", ""))
    pip = locked_pip(BUILD / "wheelhouse", BUILD / "locks" / "build.txt")
    install(pip, BUILD / "locks" / "build.txt", "--target", str(TOOLS))
    install(pip, BUILD / "locks" / f"runtime-{os.environ['VARIANT']}.txt", "--prefix", str(PREFIX))


def check_base(reference: str) -> None:
    """Stop the build where the base could be another one tomorrow."""
    if (
        not re.fullmatch(r"[^@]*[^@:]@sha256:[0-9a-f]{64}", reference)
        or ":" in reference.partition("@")[0].rpartition("/")[2]
    ):
        sys.exit(f"base_by_tag: BASE={reference!r} can move; give it as name@sha256:<64 hex digits>")


def locked_pip(wheelhouse: Path, lock: Path) -> Path:
    """The wheel of pip, once its hash is the locked one."""
    match = re.search(r"^pip==(\S+)[ \\\n]+--hash=sha256:([0-9a-f]{64})", lock.read_text(), re.MULTILINE)
    wheels = list(wheelhouse.glob("pip-*.whl"))
    if match is None or len(wheels) != 1:
        sys.exit("lock_incomplete: the build lock must name pip, and the wheelhouse must hold it once")
    found = hashlib.sha256(wheels[0].read_bytes()).hexdigest()
    if found != match[2]:
        sys.exit(f"wheel_hash_differs: {wheels[0].name} has {found}, the lock says {match[2]}")
    return wheels[0]


def install(pip: Path, lock: Path, *where: str) -> None:
    """Let pip install a lock, with hashes required and every index switched off."""
    command = [
        sys.executable,
        "-B",
        str(pip / "pip"),
        "--isolated",
        "--no-cache-dir",
        "--disable-pip-version-check",
        "install",
    ]
    options = ["--no-index", "--no-deps", "--no-compile", "--require-hashes", "--root-user-action=ignore", "--quiet"]
    sources = ["--find-links", str(BUILD / "wheelhouse"), "--requirement", str(lock)]
    subprocess.run(
        [*command, *options, *sources, *where], check=True, env={"PYTHONHASHSEED": "0", "HOME": "/nonexistent"}
    )


if __name__ == "__main__":
    main()
