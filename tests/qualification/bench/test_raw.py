"""Raw records: JSON and back, and the times derived from them."""

from __future__ import annotations

import dataclasses

from qualification import schema, strictjson
from qualification.bench.raw import RequestOutcome, RequestRecord
from qualification.evidence_view import EvidenceView
from qualification.tamper.good import Good


def _record(good_bundle: Good) -> RequestRecord:
    return EvidenceView(good_bundle.root).records(profile="B1")[0]


def test_round_trip(good_bundle: Good) -> None:
    for record in EvidenceView(good_bundle.root).all_records:
        document = strictjson.loads(strictjson.dumps_line(record.to_json()), "x")
        schema.validate("request-record", document, "x")
        assert RequestRecord.from_json(document) == record


def test_open_load_counts_from_the_scheduled_send(good_bundle: Good) -> None:
    closed = dataclasses.replace(_record(good_bundle), scheduled_ns=0)
    opened = dataclasses.replace(closed, load="poisson")
    assert closed.wall_ns == closed.end_ns - closed.t0_ns
    assert opened.wall_ns == closed.end_ns
    assert closed.ttfa_ns == closed.packets[0].at_ns - closed.t0_ns
    assert opened.ttfa_ns == closed.packets[0].at_ns


def test_without_audio_there_is_no_first_audio(good_bundle: Good) -> None:
    record = dataclasses.replace(_record(good_bundle), packets=(), samples=0, outcome=RequestOutcome.TIMEOUT)
    assert record.ttfa_ns is None
    assert record.audio_seconds == 0
    assert not record.ok


def test_duration_comes_from_samples(good_bundle: Good) -> None:
    assert dataclasses.replace(_record(good_bundle), samples=12_000).audio_seconds == 0.5
