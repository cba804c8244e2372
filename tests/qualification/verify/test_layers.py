"""Layers of listening reviews: what sound ones change, and what no finding can tell. Bad ones are in the tamper corpus."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from qualification import schema, signing
from qualification.evidence_view import EvidenceView
from qualification.gates.table import GATES
from qualification.tamper import bench
from qualification.tamper.good import Good
from qualification.tamper.good_review import add_layer, make_record
from qualification.verify.verifier import verify
from tests.qualification.listening.second import second_bundle


@pytest.fixture
def copy(good_bundle: Good, tmp_path: Path) -> bench.Bench:
    return bench.copy(good_bundle, tmp_path / "bundle")


def test_without_a_layer_nothing_was_performed(good_bundle: Good) -> None:
    verification = verify(good_bundle.root, good_bundle.trust, GATES)
    assert verification.reviews.outcome == "not_performed"
    assert len(list(verification.lines())) == 1


def test_two_listeners_are_counted_and_the_verdict_stays(copy: bench.Bench, good_bundle: Good) -> None:
    pair = signing.generate()
    second = signing.private_key(pair.private_pem, "second")
    record = make_record([EvidenceView(copy.root)])
    other = make_record(
        [EvidenceView(copy.root)], seed="f" * 32, reviewer="listener-2", session="5e551011-0000-4000-a000-000000000002"
    )
    add_layer(copy.root, record, good_bundle.reviewer)
    add_layer(copy.root, other, second)
    keys = (*good_bundle.trust.reviewer_keys, signing.trusted_key(pair.public_pem, "second.pub"))
    verification = verify(copy.root, dataclasses.replace(good_bundle.trust, reviewer_keys=keys), GATES)
    assert verification.findings == ()
    assert (verification.answer, verification.exit_code) == ("qualified", 0)
    assert (verification.reviews.reviewers, verification.reviews.clips, verification.reviews.ratings[0].n) == (2, 3, 6)
    schema.validate("verification", verification.to_json(), "verification")
    gates = {result["id"]: result["outcome"] for result in copy.read("gates.json")["results"]}
    assert gates["review.listening"] == "not_performed"


def test_a_refused_layer_is_not_counted(copy: bench.Bench, good_bundle: Good) -> None:
    name = add_layer(copy.root, make_record([EvidenceView(copy.root)]), good_bundle.reviewer)
    copy.edit(f"{name}/record.json", lambda record: record["items"][0].update(comment="better"))
    reviews = verify(copy.root, good_bundle.trust, GATES).reviews
    assert (reviews.outcome, reviews.uncounted, reviews.ratings) == ("not_performed", 1, ())


def test_without_a_reviewers_key_a_layer_is_a_note_and_not_counted(copy: bench.Bench, good_bundle: Good) -> None:
    add_layer(copy.root, make_record([EvidenceView(copy.root)]), good_bundle.reviewer)
    verification = verify(copy.root, dataclasses.replace(good_bundle.trust, reviewer_keys=()), GATES)
    assert [(finding.code, finding.refuses) for finding in verification.findings] == [("layer.unchecked", False)]
    assert (verification.exit_code, verification.reviews.outcome, verification.reviews.uncounted) == (
        0, "not_performed", 1,
    )  # fmt: skip


def test_a_pair_counts_in_both_bundles(copy: bench.Bench, good_bundle: Good, tmp_path: Path) -> None:
    other = second_bundle(good_bundle, tmp_path / "other")
    record = make_record([EvidenceView(copy.root), EvidenceView(other)])
    for root in (copy.root, other):
        add_layer(root, record, good_bundle.reviewer)
        trust = dataclasses.replace(good_bundle.trust, keys=good_bundle.trust.keys if root == copy.root else ())
        verification = verify(root, trust, GATES)
        assert not verification.refused
        assert "layer.other-bundle" in {finding.code for finding in verification.findings}
        assert verification.reviews.preferences is not None


def test_a_pair_on_the_wrong_sides_is_refused(copy: bench.Bench, good_bundle: Good, tmp_path: Path) -> None:
    other = second_bundle(good_bundle, tmp_path / "other")
    record = make_record([EvidenceView(copy.root), EvidenceView(other)])
    record["items"][0]["clips"].reverse()
    add_layer(copy.root, record, good_bundle.reviewer)
    assert "layer.order" in {finding.code for finding in verify(copy.root, good_bundle.trust, GATES).findings}


def test_a_layer_taken_out_leaves_no_trace(copy: bench.Bench, good_bundle: Good) -> None:
    add_layer(copy.root, make_record([EvidenceView(copy.root)]), good_bundle.reviewer)
    shutil.rmtree(copy.root / "layers")
    assert verify(copy.root, good_bundle.trust, GATES).findings == ()
