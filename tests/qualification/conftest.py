"""One good bundle for all tests that read one; who changes it copies it first."""

from __future__ import annotations

from pathlib import Path

import pytest

from qualification.tamper import good


@pytest.fixture(scope="session")
def good_bundle(tmp_path_factory: pytest.TempPathFactory) -> good.Good:
    """The good bundle of the tamper corpus, sealed and signed."""
    return good.build(Path(tmp_path_factory.mktemp("good"), good.RUN_ID))
