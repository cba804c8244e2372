"""The verifier's command in a network namespace without any interface, and with torch not to be imported."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from qualification.tamper.good import Good

REPOSITORY = Path(__file__).resolve().parents[3]
ISOLATE = ("unshare", "--map-root-user", "--net")
VERIFY = """
import socket, sys
sys.modules["torch"] = None  # an import of it fails from here on
if {alone}:
    assert [name for _, name in socket.if_nameindex()] == ["lo"], socket.if_nameindex()
from qualification.cli import main
sys.exit(main(sys.argv[1:]))
"""


def _can_isolate() -> bool:
    return shutil.which("unshare") is not None and subprocess.run([*ISOLATE, "true"], check=False).returncode == 0


@pytest.mark.skipif(not _can_isolate(), reason="this machine grants no network namespace")
def test_the_same_answer_without_network_and_without_torch(good_bundle: Good) -> None:
    root = good_bundle.root
    trust = ("--policy", str(root / "policy.json"), "--pins", str(root / "pins.json"))
    answers = []
    for prefix, alone in (((), False), (ISOLATE, True)):
        command = [
            *prefix,
            sys.executable,
            "-B",
            "-c",
            VERIFY.format(alone=alone),
            "verify",
            str(root),
            *trust,
            "--json",
        ]
        done = subprocess.run(command, capture_output=True, timeout=60, cwd=REPOSITORY, check=False)
        assert done.returncode == 0, done.stderr.decode()
        answers.append(done.stdout)
    assert answers[0] == answers[1]
    assert b'"answer": "qualified"' in answers[0]
