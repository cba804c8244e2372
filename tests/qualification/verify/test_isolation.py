"""The verifier's command with things taken away: no network interface, no torch, nothing that can be written to."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from qualification.tamper.good import Good

REPOSITORY = Path(__file__).resolve().parents[3]
NO_NETWORK: Final = ("unshare", "--map-root-user", "--net")
OWN_MOUNTS: Final = ("unshare", "--map-root-user", "--mount")
VERIFY = """
import sys
sys.modules["torch"] = None  # an import of it fails from here on
{proof}
from qualification.cli import main
sys.exit(main(sys.argv[1:]))
"""
ALONE = """
import socket
assert [name for _, name in socket.if_nameindex()] == ["lo"], socket.if_nameindex()
"""
UNWRITABLE = """
import errno
from pathlib import Path
for place in {places!r}:
    try:
        Path(place, "written").write_bytes(b"")
    except OSError as error:
        assert error.errno == errno.EROFS, (place, error)
    else:
        raise AssertionError(place)
"""


def _read_only(places: Sequence[str]) -> tuple[str, ...]:
    """The prefix that mounts everything under each of `places` read-only, in a mount namespace of its own."""
    steps = [
        f"mount --bind {shlex.quote(place)} {shlex.quote(place)} && mount -o remount,bind,ro {shlex.quote(place)}"
        for place in places
    ]
    return (*OWN_MOUNTS, "sh", "-c", " && ".join([*steps, "mount -o remount,bind,ro /", 'exec "$@"']), "sh")


def _grants(prefix: Sequence[str]) -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0


def _answer(root: Path, prefix: Sequence[str] = (), proof: str = "") -> bytes:
    trust = ("--policy", str(root / "policy.json"), "--pins", str(root / "pins.json"))
    python = (sys.executable, "-c", VERIFY.format(proof=proof))
    command = [*prefix, *python, "verify", str(root), *trust, "--json"]
    done = subprocess.run(command, capture_output=True, timeout=60, cwd=REPOSITORY, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.mark.skipif(not _grants(NO_NETWORK), reason="this machine grants no network namespace")
def test_the_same_answer_without_network_and_without_torch(good_bundle: Good) -> None:
    answer = _answer(good_bundle.root, NO_NETWORK, ALONE)
    assert answer == _answer(good_bundle.root)
    assert b'"answer": "qualified"' in answer


def test_the_same_answer_where_nothing_can_be_written(good_bundle: Good) -> None:
    places = [tempfile.gettempdir(), str(good_bundle.root), str(REPOSITORY), str(Path.home())]
    prefix = _read_only(places)
    if not _grants(prefix):
        pytest.skip("this machine grants no mount namespace, or no read-only mount in it")
    answer = _answer(good_bundle.root, prefix, UNWRITABLE.format(places=places))
    assert answer == _answer(good_bundle.root)
    assert b'"answer": "qualified"' in answer
