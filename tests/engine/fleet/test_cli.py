"""The command's refusals, before anything starts."""

from __future__ import annotations

import sys

import pytest

from engine.__main__ import main


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "engine.fleet.cluster", raising=False)
    assert main(["fleet", "--port", "0"]) == 2
    assert "install tts-assay[engine,fleet]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--replicas", "0"], "replicas must be 1 or more"),
        (["--replicas", "3", "--max-replicas", "2"], "not 3 to 2"),
        (["--occupancy", "0"], "occupancy must be above 0"),
        (["--cpus-per-replica", "0"], "needs a share"),
        (["--max-concurrent-requests", "0"], "concurrent requests must be within"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(flags: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", *flags]) == 2
    assert says in capsys.readouterr().err
