"""The command's refusals, before anything starts."""

from __future__ import annotations

import subprocess
import sys

import pytest

from engine.__main__ import main
from tests.engine.server.conftest import ROOT


def test_without_ray_the_extra_is_named() -> None:
    program = "import sys; sys.modules['ray'] = None; from engine.__main__ import main; sys.exit(main(['fleet', '--port', '0']))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "install tts-assay[engine,fleet]" in done.stderr


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--replicas", "0"], "replicas must be 1 or more"),
        (["--replicas", "3", "--max-replicas", "2"], "not 3 to 2"),
        (["--occupancy", "0"], "occupancy must be above 0"),
        (["--cpus-per-replica", "0"], "needs a share"),
        (["--roll"], "need the --address"),
        (["--start-node"], "need the --address"),
        (["--surge-percent", "101"], "within 0 and 100"),
        (["--max-concurrent-requests", "0"], "concurrent requests must be within"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(flags: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", *flags]) == 2
    assert says in capsys.readouterr().err
