"""A registry on loopback, started where none is named, and always stopped and removed.

It exists because an engine gives an image a digest only when the image travels: pushing and pulling back is the proof
that the digest under test is the digest that others would pull. The program is Debian's `docker-registry`.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qualification.container.faults import ContainerFault, FaultCode

PROGRAM = "docker-registry"
START_SECONDS = 10.0
_CONFIG = """\
version: 0.1
log: {{level: error, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: {root}}}, delete: {{enabled: true}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""


@contextmanager
def loopback_registry(port: int = 0) -> Iterator[str]:
    """Run a registry on 127.0.0.1 and yield its `host:port`; `port` 0 takes a free one.

    Raises:
        ContainerFault: `registry_missing` without the program, `registry_refuses` where it does not answer.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        raise ContainerFault(FaultCode.REGISTRY_MISSING, f"{PROGRAM} is not installed; install it or name a registry")
    chosen = port or free_port()
    with tempfile.TemporaryDirectory(prefix="assay-registry-") as place:
        settings = Path(place) / "config.yml"
        settings.write_text(_CONFIG.format(root=Path(place) / "store", port=chosen), encoding="ascii")
        process = subprocess.Popen(
            [program, "serve", str(settings)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            address = f"127.0.0.1:{chosen}"
            _wait(process, address)
            yield address
        finally:
            stop(process)


def free_port() -> int:
    """A loopback port that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def stop(process: subprocess.Popen[bytes], grace_seconds: float = 5.0) -> None:
    """Terminate, then kill, a child that we started."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(grace_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait(process: subprocess.Popen[bytes], address: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise ContainerFault(
                FaultCode.REGISTRY_REFUSES,
                f"the registry at {address} ended with status {process.returncode} before it answered",
            )
        try:
            with urllib.request.urlopen(f"http://{address}/v2/", timeout=1.0):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise ContainerFault(
        FaultCode.REGISTRY_REFUSES, f"the registry at {address} did not answer within {START_SECONDS:g} s"
    )
