"""What SoX makes of a stored utterance: a second implementation that shares no line with this project.

Its header facts must be ours, and the samples that it decodes must be the very bytes; a warning, such as of an early
end, counts against the file.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from qualification.digest import sha256_bytes
from qualification.errors import InputError

ENCODING: Final = "Signed Integer PCM"
_TIMEOUT_SECONDS: Final = 60


@dataclass(frozen=True, kw_only=True)
class SoxFacts:
    """One file as SoX reads it; `pcm_sha256` is over the samples that it decodes; `warnings` are lines of complaint."""

    rate_hz: int
    channels: int
    bits: int
    samples: int
    encoding: str
    pcm_sha256: str
    warnings: int


def version() -> str | None:
    """Version of the installed SoX, or None where it is not installed."""
    if shutil.which("sox") is None:
        return None
    return _run("--version").stdout.decode(errors="replace").strip().rpartition("v")[2]


def read(path: Path) -> SoxFacts | None:
    """Ask SoX about one file; None where SoX refuses it.

    Raises:
        InputError: SoX does not come to an end.
    """
    facts = {option: _run("--info", option, str(path)) for option in ("-r", "-c", "-b", "-s", "-e")}
    decoded = _run(str(path), "--type", "raw", "-")
    if decoded.returncode or any(asked.returncode for asked in facts.values()):
        return None
    said = {option: asked.stdout.decode().strip() for option, asked in facts.items()}
    complaints = b"".join(asked.stderr for asked in (*facts.values(), decoded))
    return SoxFacts(
        rate_hz=int(said["-r"]),
        channels=int(said["-c"]),
        bits=int(said["-b"]),
        samples=int(said["-s"]),
        encoding=said["-e"],
        pcm_sha256=sha256_bytes(decoded.stdout),
        warnings=len(complaints.splitlines()),
    )


def _run(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["sox", *arguments], capture_output=True, timeout=_TIMEOUT_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise InputError(f"sox took longer than {_TIMEOUT_SECONDS} s; look at the file by hand") from error
