"""Derivations over the files of the good bundle, and the fields of one request."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from qualification import derivation
from qualification.bench.raw import Packet, RequestOutcome, RequestRecord
from qualification.errors import BundleError
from qualification.evidence_view import EvidenceView
from qualification.results import Derivation
from qualification.tamper.good import Good

MS = 1_000_000


def _value(good_bundle: Good, file: str, field: str, estimator: str, **where: Any) -> object:
    view = EvidenceView(good_bundle.root)
    return derivation.evaluate(Derivation(file=file, field=field, estimator=estimator, where=where), view).value


def test_requests_are_filtered_and_counted(good_bundle: Good) -> None:
    assert _value(good_bundle, "samples/b1.jsonl", "request_id", "count") == 7
    assert _value(good_bundle, "samples/b1.jsonl", "request_id", "count", phase="warmup") == 1
    assert _value(good_bundle, "samples/b3.jsonl", "request_id", "count", phase="measure", round=1) == 4
    assert _value(good_bundle, "samples/*.jsonl", "language", "unique", phase="measure") == 3
    assert _value(good_bundle, "samples/*.jsonl", "natural", "sum", language="tr", phase="measure") == 2


def test_scenario_wall_is_added_up_over_rounds(good_bundle: Good) -> None:
    rounds = [
        _value(good_bundle, "samples/b3.jsonl", "request_id", "span", phase="measure", round=turn) for turn in (0, 1)
    ]
    both = _value(good_bundle, "samples/b3.jsonl", "request_id", "span", phase="measure")
    assert both == pytest.approx(sum(map(float, rounds)))  # type: ignore[arg-type]
    assert float(both) < 1  # type: ignore[arg-type]  # the pause between the rounds is not measured time


def test_telemetry_is_cut_to_the_windows_of_its_phase(good_bundle: Good) -> None:
    view = EvidenceView(good_bundle.root)
    window = next(p for p in view.phases if p["profile"] == "B1" and p["kind"] == "measure")
    inside = [s for s in view.telemetry if window["start_ns"] <= s.at_ns <= window["end_ns"]]
    assert 3 < len(inside) < len(view.telemetry)
    where = {"profile": "B1", "phase": "measure"}
    assert _value(good_bundle, "telemetry.jsonl", "rss_bytes", "count", **where) == len(inside)
    assert _value(good_bundle, "telemetry.jsonl", "rss_bytes", "max", **where) == max(s.rss_bytes for s in inside)
    assert _value(good_bundle, "telemetry.jsonl", "gpu_power_w", "count") == len(view.telemetry)


def test_clips_and_gates(good_bundle: Good) -> None:
    assert _value(good_bundle, "audio/*.wav", "pcm_sha256", "count") == 28
    assert _value(good_bundle, "gates.json", "id", "count", outcome="passed") == 17


@pytest.mark.parametrize(
    ("file", "field", "estimator", "where", "message"),
    [
        ("samples/none.jsonl", "rtf", "max", {}, "no file of rows"),
        ("run.json", "rtf", "max", {}, "no file of rows"),
        ("samples/b1.jsonl", "seed", "max", {}, "no field 'seed'"),
        ("samples/b1.jsonl", "rtf", "mode", {}, "estimator 'mode' is unknown"),
        ("samples/b1.jsonl", "rtf", "max", {"uuid": "x"}, "cannot be filtered by 'uuid'"),
        ("telemetry.jsonl", "rtf", "max", {}, "no field 'rtf'"),
        ("telemetry.jsonl", "rss_bytes", "max", {"language": "en"}, "cannot be filtered"),
        ("audio/*.wav", "rtf", "max", {}, "no field"),
        ("audio/*.wav", "peak", "max", {"phase": "measure"}, "cannot be filtered"),
        ("gates.json", "n", "sum", {}, "no field 'n'"),
        ("gates.json", "id", "count", {"phase": "measure"}, "cannot be filtered"),
    ],
)
def test_refuses_what_it_does_not_know(
    good_bundle: Good, file: str, field: str, estimator: str, where: dict[str, Any], message: str
) -> None:
    with pytest.raises(BundleError, match=message):
        _value(good_bundle, file, field, estimator, **where)


def _with_packets(good_bundle: Good, *packets: tuple[int, int]) -> RequestRecord:
    """A record whose packets arrive at `ms` after the first with `frames` frames."""
    record = EvidenceView(good_bundle.root).records(profile="B1")[0]
    made = tuple(
        Packet(
            at_ns=10**9 + ms * MS, sequence=0, first_frame=0, first_sample=0, frames=frames, samples=frames * 1_920,
            bytes=frames * 3_840, final=False,
        )
        for ms, frames in packets
    )  # fmt: skip
    return dataclasses.replace(record, packets=made)


@pytest.mark.parametrize(
    ("packets", "late_ms"),
    [
        ([(0, 1), (80, 4), (400, 4)], 0),
        ([(0, 1), (81, 4)], 1),
        ([(0, 1), (100, 4), (500, 4)], 100),
        ([(0, 1), (200, 4), (210, 4)], 120),
        ([(0, 1)], None),
        ([], None),
    ],
)
def test_underrun(good_bundle: Good, packets: list[tuple[int, int]], late_ms: int | None) -> None:
    record = _with_packets(good_bundle, *packets)
    expected = None if late_ms is None else late_ms * MS
    assert derivation.underrun_ns(record) == expected
    underran = derivation.REQUEST_FIELDS["underran"](record)
    assert underran == (None if late_ms is None else int(late_ms > 0))
    shown = derivation.REQUEST_FIELDS["underrun_ms"](record)
    assert shown == late_ms


def test_a_failure_delivers_no_audio_and_does_not_end_naturally(good_bundle: Good) -> None:
    record = EvidenceView(good_bundle.root).records(profile="B1")[0]
    failed = dataclasses.replace(record, outcome=RequestOutcome.TIMEOUT)
    capped = dataclasses.replace(record, finish_reason="length")
    fields = derivation.REQUEST_FIELDS
    assert [fields[name](record) for name in ("succeeded", "failed", "natural", "unnatural")] == [1, 0, 1, 0]
    assert [fields[name](failed) for name in ("succeeded", "failed", "natural", "unnatural")] == [0, 1, 0, 1]
    assert [fields[name](capped) for name in ("succeeded", "failed", "natural", "unnatural")] == [1, 0, 0, 1]
    assert fields["audio_s"](failed) == 0.0
    assert fields["audio_s"](record) == record.audio_seconds
    assert derivation.rtf(dataclasses.replace(record, samples=0)) is None
    assert derivation.rtf(record) == pytest.approx(record.wall_ns / 1e9 / 0.32)
