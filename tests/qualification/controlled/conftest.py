"""One comparison for all tests that read one; who changes it copies it first."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from qualification.cli import main
from tests.qualification.controlled.room import compare_run, make_room
from tests.qualification.desk import Desk


@pytest.fixture(autouse=True)
def undrawn_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the reports of the bundles out."""
    for place in ("cli.report_program", "controlled.command.report_program", "comparison.command.report_program"):
        monkeypatch.setattr(f"qualification.{place}", lambda: None)


@pytest.fixture(scope="session")
def room(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A signed comparison of the fake engine with itself: B1 and B3 in two rounds, eight runs."""
    desk = make_room(tmp_path_factory.mktemp("room"))
    with pytest.MonkeyPatch.context() as patch:
        for place in ("controlled.command.report_program", "comparison.command.report_program"):
            patch.setattr(f"qualification.{place}", lambda: None)
        assert main(["keygen", str(desk.root / "key")]) == 0
        assert compare_run(desk, "--key", str(desk.root / "key")) == 0
    return desk


@pytest.fixture
def copy(room: Desk, tmp_path: Path) -> Path:
    return Path(shutil.copytree(room.out, tmp_path / "copy", copy_function=os.link))
