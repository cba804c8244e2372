"""One good bundle for all tests that read one (who changes it copies it first), and a desk to qualify at."""

from __future__ import annotations

from pathlib import Path

import pytest

from qualification.tamper import good
from tests.qualification.desk import Desk, make_desk


@pytest.fixture(scope="session")
def good_bundle(tmp_path_factory: pytest.TempPathFactory) -> good.Good:
    """The good bundle of the tamper corpus, sealed and signed."""
    return good.build(Path(tmp_path_factory.mktemp("good"), good.RUN_ID))


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the report out: drawing it twice a run is most of the time, and its own tests look at it."""
    for place in ("qualify", "cli"):
        monkeypatch.setattr(f"qualification.{place}.report_program", lambda: None)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr("qualification.watching.IDLE_SECONDS", 0.3)
    return make_desk(tmp_path)
