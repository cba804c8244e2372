"""A review as a layer: what it adds to a bundle, what the verifier says of it, and asking again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from qualification import schema, signing, strictjson
from qualification.audio_review import layer, programs, record, review
from qualification.audio_review.record import Request
from qualification.cli import main
from qualification.drawing import report_program
from qualification.errors import BundleError
from qualification.evidence_view import EvidenceView
from qualification.gates.table import GATES
from qualification.listening.layer import files_by_layer
from qualification.tamper import bench
from qualification.tamper.good import Good
from qualification.verify.verifier import verify
from tests.qualification.audio_review.sounds import POLICY

LIGHT = Request(policy=POLICY, say=lambda _: None, without=frozenset(programs.ASKED))


@pytest.fixture
def copy(good_bundle: Good, tmp_path: Path) -> bench.Bench:
    return bench.copy(good_bundle, tmp_path / "bundle")


def _codes(root: Path, good_bundle: Good) -> set[str]:
    return {finding.code for finding in verify(root, good_bundle.trust, GATES).findings}


def test_a_review_lies_beside_a_bundle_that_stays_as_it_is(copy: bench.Bench, good_bundle: Good) -> None:
    before = {path: path.read_bytes() for path in copy.root.rglob("*") if path.is_file()}
    name, made = review.attach(EvidenceView(copy.root), LIGHT, good_bundle.key)
    schema.validate(layer.SCHEMA, made, name)
    assert {path: path.read_bytes() for path in before} == before
    assert files_by_layer(EvidenceView(copy.root)) == {}  # no listener's review
    verification = verify(copy.root, good_bundle.trust, GATES)
    assert (verification.answer, verification.exit_code) == ("qualified", 0)
    assert [finding.code for finding in verification.findings] == ["layer.audio-review"]
    assert verification.reviews.uncounted == 0


def test_without_a_signature_the_word_of_programs_is_nobodys(copy: bench.Bench, good_bundle: Good) -> None:
    review.attach(EvidenceView(copy.root), LIGHT, None)
    assert _codes(copy.root, good_bundle) == {"layer.unsigned", "layer.audio-review"}


def test_a_policy_of_ones_own_is_said(copy: bench.Bench, good_bundle: Good) -> None:
    from qualification.audio_review.policy import parse

    loose = {**POLICY.document, "limits": {**POLICY.document["limits"], "similarity_max": 1.0}}
    request = Request(policy=parse(loose), say=lambda _: None, without=frozenset(programs.ASKED))
    review.attach(EvidenceView(copy.root), request, good_bundle.key)
    assert _codes(copy.root, good_bundle) == {"layer.other-policy", "layer.audio-review"}


def test_the_record_gives_back_what_the_checks_saw(copy: bench.Bench) -> None:
    made = record.make(EvidenceView(copy.root), LIGHT)
    found = record.found_in(strictjson.loads(strictjson.dumps(made), "record"))
    assert [clip.to_json() for clip in found.clips] == made["clips"]
    assert record.seams_json(found.seams) == made["seams"]
    assert {item["name"] for item in made["absent"]} == set(programs.ASKED)


def test_a_changed_bundle_takes_no_review(copy: bench.Bench) -> None:
    copy.replace("notes.txt", b"hello\n")
    with pytest.raises(BundleError, match=r"notes\.txt"):
        review.attach(EvidenceView(copy.root), LIGHT, None)


def test_commands_and_their_exit_statuses(
    copy: bench.Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    without = ["--without", "sox,loudness,voice,dnsmos,recogniser"]
    assert main(["audio-review", str(copy.root), "--check"]) == BundleError.exit_code
    assert main(["audio-review", str(copy.root), "--without", "ears"]) == 2
    assert main(["audio-review", str(copy.root), "--recogniser", str(tmp_path)]) == 3
    key = tmp_path / "key"
    signing.write_pair(key, tmp_path / "key.pub")
    capsys.readouterr()
    assert main(["audio-review", str(copy.root), *without, "--key", str(key)]) == 0
    said = capsys.readouterr().out
    assert "passed        audio-review.exact" in said
    assert "not_performed audio-review.second-reader" in said
    assert main(["audio-review", str(copy.root), "--check", *without]) == 0
    assert "the same again" in capsys.readouterr().out


def test_asking_again_finds_a_figure_that_was_changed(copy: bench.Bench) -> None:
    made = record.make(EvidenceView(copy.root), LIGHT)
    made["clips"][0]["facts"]["peak"] += 0.01
    made["checks"][0]["outcome"] = "failed"
    strictjson.write(copy.root / layer.name_of(strictjson.dumps(made)) / layer.RECORD, made)
    found = review.ask_again(EvidenceView(copy.root), LIGHT)
    lines = next(iter(found.values()))
    assert any(".peak" in line for line in lines)
    assert any("audio-review.exact" in line for line in lines)


def test_every_figure_of_a_clip_says_who_gives_it(copy: bench.Bench) -> None:
    made: dict[str, Any] = record.make(EvidenceView(copy.root), LIGHT)
    told = {item["field"].partition(".")[0] for item in made["policy"]["figures"]}
    named = {"path", "sha256", "request_id", "workload_id", "language", "seed", "words"}
    assert made["clips"][0].keys() - named == told - {"seams"}


def test_only_the_page_that_is_drawn_again_has_the_review(copy: bench.Bench, tmp_path: Path) -> None:
    name, _ = review.attach(EvidenceView(copy.root), LIGHT, None)
    assert main(["report", str(copy.root), "--out", str(tmp_path / "again.html")]) == 0
    again = (tmp_path / "again.html").read_text(encoding="utf-8")
    draw = report_program()
    assert draw is not None
    sealed = draw(EvidenceView(copy.root))
    for page, has in ((again, True), (sealed, False)):
        assert (name in page) is has
        assert ('id="audio-review"' in page) is has
    assert "unsigned" in again
    assert again.count("Left out by the caller.") == 5
