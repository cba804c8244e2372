"""The view over evidence: confined, strict, cached."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from qualification.errors import BundleError, SchemaError, StrictJsonError
from qualification.evidence_view import EvidenceView
from qualification.tamper.good import Good


@pytest.fixture
def changed(good_bundle: Good, tmp_path: Path) -> Path:
    """A private copy of the good bundle."""
    return Path(shutil.copytree(good_bundle.root, tmp_path / "copy"))


def test_reads_everything(good_bundle: Good) -> None:
    view = EvidenceView(good_bundle.root)
    assert view.run["tier"] == "reference"
    assert view.sample_files == tuple(sorted(f"samples/{name}.jsonl" for name in ("b1", "b3", "b6", "eos", "repeat")))
    assert len(view.records()) == 28
    assert len(view.records(phase=None)) == len(view.all_records) == 43
    assert {record.phase for record in view.records(profile="B6", phase="warmup")} == {"warmup"}
    assert len(view.audio_files) == 28
    assert view.clip(view.audio_files[0]).samples == 7_680
    assert view.workload.languages == ("en", "de", "tr")
    assert view.run is view.document("run.json")


@pytest.mark.parametrize("path", ["../run.json", "/etc/hostname", "a/../run.json"])
def test_stays_inside(good_bundle: Good, path: str) -> None:
    view = EvidenceView(good_bundle.root)
    for read in (view.sha256, view.clip, view.records_in, view.exists):
        with pytest.raises(BundleError, match="no plain relative path"):
            read(path)


def test_follows_no_link(changed: Path) -> None:
    (changed / "run.json").rename(changed.parent / "run.json")
    (changed / "run.json").symlink_to(changed.parent / "run.json")
    view = EvidenceView(changed)
    assert view.exists("run.json")
    with pytest.raises(BundleError, match="symbolic link"):
        view.document("run.json")


def test_names_the_line(changed: Path) -> None:
    place = changed / "samples/b1.jsonl"
    lines = place.read_bytes().splitlines(keepends=True)
    place.write_bytes(lines[0] + lines[1].replace(b'"outcome":"ok"', b'"outcome":"fine"') + b"".join(lines[2:]))
    with pytest.raises(SchemaError, match=r"^samples/b1\.jsonl:2: \$\.outcome"):
        EvidenceView(changed).records_in("samples/b1.jsonl")
    place.write_bytes(b"")
    with pytest.raises(BundleError, match="holds no line"):
        EvidenceView(changed).records_in("samples/b1.jsonl")
    (changed / "run.json").write_bytes(b"{")
    with pytest.raises(StrictJsonError, match=r"^run\.json: "):
        EvidenceView(changed).document("run.json")


def test_telemetry_may_be_absent(changed: Path) -> None:
    (changed / "telemetry.jsonl").unlink()
    assert EvidenceView(changed).telemetry == ()
    (changed / "workload.json").unlink()
    with pytest.raises(BundleError, match="no such file in the bundle"):
        EvidenceView(changed).document("workload.json")
