"""Notes, for each Debian archive just unpacked, its control paragraph and its files. mmdebstrap runs this on the host.

The notes land in the tree itself, under `NOTES`; `base_tree` reads them, keeps the paragraphs and removes the lists.
Standard library only, and no import of ours: it is started as a plain script.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

NOTES = "var/lib/dpkg/status.d"


def main(root: Path) -> None:
    """Write `<package>` (control paragraph and archive hash) and `<package>.list` (paths) for each archive."""
    notes = root / NOTES
    notes.mkdir(parents=True, exist_ok=True)
    for archive in sorted((root / "var/cache/apt/archives").glob("*.deb")):
        control = _run("dpkg-deb", "-f", str(archive))
        name = _run("dpkg-deb", "-f", str(archive), "Package").decode().strip()
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        (notes / name).write_bytes(control.rstrip(b"\n") + f"\nX-Archive-SHA256: {digest}\n".encode())
        (notes / f"{name}.list").write_bytes(_paths(archive))


def _run(*command: str) -> bytes:
    return subprocess.run(command, check=True, capture_output=True).stdout


def _paths(archive: Path) -> bytes:
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(archive)], stdout=subprocess.PIPE) as tree:
        return subprocess.run(["tar", "-t"], check=True, stdin=tree.stdout, capture_output=True).stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]))
