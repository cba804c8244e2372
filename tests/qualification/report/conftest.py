"""Two small sample bundles, written once a session: a good one and one with everything that can go wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from qualification.evidence_view import EvidenceView
from tests.qualification.report.sample_bundle import Sample, build

BAD = {"unnatural": frozenset({"coverage-fi", "switch-de-en"}), "failing": frozenset({"coverage-hi", "bench-de-short"})}


@pytest.fixture(scope="session")
def good_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("good")
    return build(base / "bundle", base, Sample(seeds=1, frames=10, bench_rounds=5))


@pytest.fixture(scope="session")
def bad_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("bad")
    return build(base / "bundle", base, Sample(seeds=1, frames=10, bench_rounds=1, **BAD))


@pytest.fixture(scope="session")
def good(good_root: Path) -> EvidenceView:
    return EvidenceView(good_root)


@pytest.fixture(scope="session")
def bad(bad_root: Path) -> EvidenceView:
    return EvidenceView(bad_root)
