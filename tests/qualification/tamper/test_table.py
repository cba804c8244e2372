"""The table of tampers: what it prints, and that it fails when something slips through."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from qualification.tamper import __main__ as table
from qualification.tamper import run
from qualification.tamper.corpus import CORPUS
from qualification.tamper.good import Good


@pytest.fixture
def two_accidents(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {name: run.ACCIDENTS[name] for name in ("deleted", "emptied")}
    monkeypatch.setattr(run, "ACCIDENTS", chosen)


@pytest.mark.usefixtures("two_accidents")
def test_a_bundle_of_ones_own_meets_every_accident(good_bundle: Good, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(good_bundle.root.rglob("*"))
    assert table.main([str(good_bundle.root)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines[2:4]] == [
        ["refused", "file.missing", "file.missing"],
        ["refused", "file.size", "file.size"],
    ]
    assert lines[-1].endswith("0 rows slipped through")
    assert sorted(good_bundle.root.rglob("*")) == before


def test_an_accident_that_is_refused_with_another_code_slips(
    good_bundle: Good, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "ACCIDENTS", {"deleted": ("file.extra", run.ACCIDENTS["deleted"][1])})
    assert table.main([str(good_bundle.root)]) == 1
    out = capsys.readouterr().out
    assert "SLIPPED  file.extra" in out
    assert out.endswith("1 rows slipped through\n")


def test_no_bundle_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        table.main([str(tmp_path)])
    assert "is no sealed bundle; give the directory that holds manifest.json" in capsys.readouterr().err


def test_the_readme_promises_no_more_tampers_than_there_are() -> None:
    readme = (Path(__file__).resolve().parents[3] / "README.md").read_text(encoding="utf-8")
    changes, codes = re.findall(r"The table has (\d+) changes to a good bundle, each with the one of (\d+)", readme)[0]
    assert 200 < int(changes) <= len(CORPUS)
    assert 90 < int(codes) <= len({tamper.code for tamper in CORPUS})
    assert f"{['no', 'one', 'two', 'three', 'four', 'five', 'six'][len(run.ACCIDENTS)]} kinds of accident" in readme
