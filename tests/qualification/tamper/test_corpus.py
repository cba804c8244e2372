"""Each bundle that must be refused is refused, by its own finding; and no finding is without a tamper."""

from __future__ import annotations

from pathlib import Path

import pytest

from qualification.tamper import bench
from qualification.tamper.changes import Tamper, case
from qualification.tamper.corpus import CORPUS
from qualification.tamper.good import Good
from qualification.tamper.run import ACCIDENTS, over_all_files, run_tamper
from qualification.verify.findings import CODES

# Codes that no changed bundle can raise, or that are notes; each has a test of its own in tests/qualification/verify.
ELSEWHERE = {
    "bundle.unreadable",
    "verifier.step-failed",
    "signature.unchecked",
    "signature.none",
    "report.unchecked",
    "telemetry.jitter",
    "layer.unchecked",
    "layer.other-bundle",
    "layer.unsigned",
    "layer.other-policy",
    "layer.audio-review",
}


@pytest.mark.parametrize("tamper", CORPUS, ids=[tamper.name for tamper in CORPUS])
def test_is_refused(tamper: Tamper, good_bundle: Good, tmp_path: Path) -> None:
    caught = run_tamper(good_bundle, tamper, tmp_path / "bundle")
    assert caught.caught, f"found instead: {caught.found}"


@pytest.mark.parametrize("name", ACCIDENTS)
def test_no_file_is_overlooked(name: str, good_bundle: Good, tmp_path: Path) -> None:
    caught = over_all_files(good_bundle.root, name, tmp_path)
    assert caught.cases > 40
    assert caught.caught, f"missed: {caught.found}"


def test_every_code_has_a_tamper() -> None:
    of_comparisons = {code for code in CODES if code.startswith(("comparison.", "schedule."))}  # see controlled/
    assert {tamper.code for tamper in CORPUS} == set(CODES) - ELSEWHERE - of_comparisons
    assert len({tamper.name for tamper in CORPUS}) == len(CORPUS)


def test_a_tamper_that_changes_nothing_shows_nothing(good_bundle: Good, tmp_path: Path) -> None:
    idle = case("idle", "file.digest", lambda b: b.replace("run.json", (b.root / "run.json").read_bytes()))
    with pytest.raises(ValueError, match="changed nothing"):
        run_tamper(good_bundle, idle, tmp_path / "bundle")


def test_a_tamper_with_another_code_slips(good_bundle: Good, tmp_path: Path) -> None:
    wrong = case("wrong", "audio.repeated", lambda b: b.edit("run.json", lambda run: run.update(tier="release")))
    caught = run_tamper(good_bundle, wrong, tmp_path / "bundle")
    assert not caught.caught
    assert "tier.not-derived" in caught.found


def test_the_good_bundle_is_left_alone(good_bundle: Good, tmp_path: Path) -> None:
    before = (good_bundle.root / "run.json").read_bytes()
    copy = bench.copy(good_bundle, tmp_path / "bundle")
    copy.edit("run.json", lambda run: run.update(tier="release"))
    assert (good_bundle.root / "run.json").read_bytes() == before
