"""Attaching: what is refused before anything is signed, and that nothing is left behind then."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qualification import signing, strictjson
from qualification.cli import main
from qualification.errors import BundleError, InputError
from qualification.evidence_view import EvidenceView
from qualification.listening.attach import attach
from qualification.tamper import bench
from qualification.tamper.good import Good
from qualification.tamper.good_review import make_record
from tests.qualification.listening.second import second_bundle

Record = dict[str, Any]


@pytest.fixture
def root(good_bundle: Good, tmp_path: Path) -> Path:
    return bench.copy(good_bundle, tmp_path / "bundle").root


def _file(tmp_path: Path, record: Record) -> Path:
    file = tmp_path / "review.json"
    file.write_text(json.dumps(record), encoding="utf-8")  # as a browser writes it, not canonical
    return file


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["items"][1]["clips"][0]["ratings"].pop("artefacts"), "'artefacts' is a required property"),
        (lambda d: d["items"][0]["clips"][0].update(heard=False), "heard"),
        (lambda d: d["items"][0].update(comment="x" * 1_001), "comment"),
        (lambda d: d["items"][0].update(preference="first"), "preference"),
        (lambda d: d.update(reviewer="two words"), "reviewer"),
        (lambda d: d.update(note="more"), "note"),
        (lambda d: d["items"].pop(), "layer.coverage"),
        (lambda d: d["items"].reverse(), "layer.order"),
        (lambda d: d["items"][0]["clips"][0].update(path="audio/other.wav"), "layer.clip"),
        (lambda d: d.update(ended_utc="2026-01-02T09:00:00Z"), "layer.times"),
    ],
)
def test_a_record_that_is_not_a_full_review_is_refused(
    change: Callable[[Record], object], message: str, root: Path, good_bundle: Good, tmp_path: Path
) -> None:
    record = make_record([EvidenceView(root)])
    change(record)
    with pytest.raises(InputError, match=message):
        attach(root, _file(tmp_path, record), good_bundle.reviewer)
    assert not (root / "layers").exists()


def test_a_record_of_another_bundle_is_refused(root: Path, good_bundle: Good, tmp_path: Path) -> None:
    other = second_bundle(good_bundle, tmp_path / "other")
    file = _file(tmp_path, make_record([EvidenceView(root)]))
    with pytest.raises(InputError, match=r"layer\.moved"):
        attach(other, file, good_bundle.reviewer)


def test_a_sitting_is_attached_once(root: Path, good_bundle: Good, tmp_path: Path) -> None:
    record = make_record([EvidenceView(root)])
    name = attach(root, _file(tmp_path, record), good_bundle.reviewer)
    assert (root / name / "record.json").read_bytes() == strictjson.dumps(record)
    with pytest.raises(BundleError, match="holds this sitting already"):
        attach(root, _file(tmp_path, record), good_bundle.reviewer)
    again = make_record([EvidenceView(root)], session="5e551011-0000-4000-a000-000000000009")
    with pytest.raises(BundleError, match="holds this sitting already"):
        attach(root, _file(tmp_path, again), good_bundle.reviewer)
    assert len(list((root / "layers").iterdir())) == 1


def test_a_bundle_that_was_changed_takes_no_review(root: Path, good_bundle: Good, tmp_path: Path) -> None:
    file = _file(tmp_path, make_record([EvidenceView(root)]))
    (root / "notes.txt").write_text("hello")
    with pytest.raises(BundleError, match=r"notes\.txt"):
        attach(root, file, good_bundle.reviewer)


def test_commands_and_their_exit_statuses(
    root: Path, good_bundle: Good, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "reviewer.key"
    signing.write_pair(key, tmp_path / "reviewer.key.pub")
    file = _file(tmp_path, make_record([EvidenceView(root)]))
    assert main(["attach-review", str(root), str(file), "--key", str(key)]) == 0
    assert capsys.readouterr().out.startswith("layers/review-")
    assert main(["attach-review", str(root), str(file), "--key", str(key)]) == BundleError.exit_code
    assert main(["review-page", str(root), str(root), "--out", str(tmp_path / "x.html")]) == InputError.exit_code
    trust = ("--policy", str(root / "policy.json"), "--pins", str(root / "pins.json"))
    capsys.readouterr()
    assert main(["verify", str(root), *trust, "--reviewer-key", str(tmp_path / "reviewer.key.pub")]) == 0
    assert "Listening review: performed after sealing, 1 reviewer, 3 clips" in capsys.readouterr().out
    assert main(["verify", str(root), *trust]) == 0
    out = capsys.readouterr().out
    assert "layer.unchecked" in out and "Listening review: not performed" in out
