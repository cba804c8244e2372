"""Where the verifier's relations begin to refuse: what lies exactly on a bound passes, the next step does not.

The tampers are coarse; a bound that moved by one would still refuse them. These tests were written for the survivors of a
mutation run (see `mutation-survivors.json`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from qualification import paths
from qualification.bench.raw import Packet, RequestOutcome, RequestRecord
from qualification.evidence_view import EvidenceView
from qualification.tamper.good_documents import make_run, make_workload, utc
from qualification.tamper.good_requests import make_record
from qualification.verify import plan, requests, sense, timeline
from qualification.verify.findings import Finding
from qualification.workload import parse_workload

MS = 1_000_000
B1: dict[str, Any] = next(profile for profile in make_run()["profiles"] if profile["name"] == "B1")
WARM = {**B1, "warmup_requests": 0}
PHASE = {"name": "B1", "kind": "measure", "profile": "B1", "round": 0}


def _evidence(records: Iterable[RequestRecord] = (), **more: Any) -> EvidenceView:
    """As much of the evidence as a step looks at: one file of records, the good plan, nothing sampled."""
    kept = tuple(records)
    run = {**make_run(), "profiles": [WARM], "ended_utc": utc(3_600_000 * MS)}
    run["subject"] = {**run["subject"], "kind": "endpoint"}
    values = {
        "run": run, "all_records": kept, "sample_files": (B1["samples"],), "records_in": lambda _: kept,
        "records": lambda **_: kept, "workload": parse_workload(make_workload(), "workload"), "telemetry": (), "phases": (), "leaves_open": frozenset(),
    }  # fmt: skip
    return cast(EvidenceView, SimpleNamespace(**(values | more)))


def _record(index: int = 0, **changes: Any) -> RequestRecord:
    return dataclasses.replace(make_record(B1, "measure", 0, index, 0), **changes)


def _told(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    return [(finding.code, finding.detail) for finding in findings]


def _of(record: RequestRecord, *others: RequestRecord, seconds: float = 20.0) -> list[tuple[str, str]]:
    evidence = _evidence([record, *others])
    evidence.run["parameters"] = {"max_duration_seconds": seconds}
    return _told(requests.check(evidence))


def test_as_many_frames_as_the_ceiling() -> None:
    assert _of(_record(), seconds=4 * 0.08) == []
    assert [code for code, _ in _of(_record(), seconds=3 * 0.08)] == ["request.ceiling"]


def test_packets_may_share_a_moment_with_each_other_and_with_the_end() -> None:
    record = _record()
    late = (
        dataclasses.replace(record.packets[0], at_ns=record.end_ns),
        dataclasses.replace(record.packets[1], at_ns=record.end_ns),
    )
    assert _of(dataclasses.replace(record, packets=late)) == []
    after = dataclasses.replace(late[1], at_ns=record.end_ns + 1)
    assert [code for code, _ in _of(dataclasses.replace(record, packets=(late[0], after)))] == ["packet.time-order"]


def _packets(*frames: int) -> tuple[Packet, ...]:
    begins = [sum(frames[:number]) for number in range(len(frames))]
    at = _record().packets[0].at_ns
    return tuple(
        Packet(
            at_ns=at, sequence=number, first_frame=begin, first_sample=begin * 1_920, frames=count, samples=count * 1_920,
            bytes=count * 3_840, final=number == len(frames) - 1,
        )
        for number, (begin, count) in enumerate(zip(begins, frames, strict=True))
    )  # fmt: skip


@pytest.mark.parametrize("frames", [(4,), (1, 1, 2), (1, 1, 1, 1)])
def test_a_stream_of_any_number_of_packets_ends_with_its_one_final_packet(frames: tuple[int, ...]) -> None:
    record = _record(packets=_packets(*frames))
    assert record.server_metrics is not None
    told = dataclasses.replace(record.server_metrics, emitted_packets=len(frames))
    assert _of(dataclasses.replace(record, server_metrics=told)) == []
    other = dataclasses.replace(told, emitted_packets=len(frames) + 1)
    assert _of(dataclasses.replace(record, server_metrics=other)) == [
        (
            "request.server-account",
            f"{record.request_id}: the server tells of {len(frames) + 1} packets, {len(frames)} arrived",
        )
    ]


def test_a_refused_request_has_no_audio() -> None:
    record = _record(outcome=RequestOutcome.REFUSED, http_status=429, server_metrics=None, finish_reason=None)
    assert _of(record) == [("request.outcome", f"{record.request_id}: refused, and yet audio arrived")]


def test_the_server_may_take_one_percent_and_five_milliseconds_more() -> None:
    record = _record(end_ns=_record().t0_ns + 100 * MS)
    assert record.server_metrics is not None
    for microseconds, found in ((106_000, []), (106_001, ["request.server-account"])):
        told = dataclasses.replace(record.server_metrics, wall_microseconds=microseconds)
        assert [code for code, _ in _of(dataclasses.replace(record, server_metrics=told))] == found


def test_which_requests_are_compared_by_their_audio() -> None:
    first, second = _record(0), _record(1)
    same = dataclasses.replace(second, pcm_sha256=first.pcm_sha256)
    broken = dataclasses.replace(same, outcome=RequestOutcome.STREAM_ERROR, server_metrics=None, finish_reason=None)
    unknown = dataclasses.replace(_record(2), workload_id="no-such-entry", pcm_sha256=first.pcm_sha256)
    third = dataclasses.replace(_record(3), pcm_sha256=first.pcm_sha256)
    repeated = f"{third.request_id}: the same audio as a request of another text, description or seed"
    assert _of(first, broken) == []
    assert _of(first, unknown) == []
    assert _of(first, broken, unknown, third) == [("audio.repeated", repeated)]


def _planned(records: Iterable[RequestRecord], *profiles: Mapping[str, Any]) -> list[tuple[str, str]]:
    evidence = _evidence(records)
    evidence.run["profiles"] = [dict(profile) for profile in profiles]
    return _told(plan.check(evidence))


SIX = tuple(_record(index) for index in range(6))


def test_profiles_share_neither_a_name_nor_a_file() -> None:
    assert _planned(SIX, WARM) == []
    shared = ("plan.profile", "two profiles share a name or a file of records")
    assert shared in _planned(SIX, WARM, {**WARM, "samples": "samples/other.jsonl"})
    assert shared in _planned(SIX, WARM, {**WARM, "name": "B2"})


def test_a_timed_round_may_have_more_requests_and_may_not_end_early() -> None:
    seconds = (SIX[-1].end_ns - SIX[0].t0_ns) / 1e9
    timed = {**WARM, "stop": "duration", "minimum_seconds": seconds}
    more = (*SIX, _record(6))
    assert _planned(SIX, timed) == []
    assert _planned(more, timed) == []
    assert _planned(more, WARM) == [("plan.count", "round 0: 7 measured requests, the plan has 6")]
    assert _planned(SIX[:5], timed)[0] == ("plan.count", "round 0: 5 measured requests, the plan has 6")
    longer = {**timed, "minimum_seconds": 0.7}
    assert _planned(SIX, longer) == [("plan.count", f"round 0: {seconds:.3f} s, the plan has at least 0.7 s")]
    assert _planned((), longer) == [
        ("plan.count", "the measured rounds are not 0 to 0"),
        ("plan.count", "round 0: 0 measured requests, the plan has 6"),
    ]


def test_a_round_that_was_counted_may_be_short() -> None:
    assert _planned(SIX, {**WARM, "minimum_seconds": 3_600}) == []


def test_every_unknown_entry_is_named() -> None:
    found = _planned(SIX, {**WARM, "entries": ["no-b", "bench-one-en", "no-a"], "repeats": 2})
    assert ("plan.entry", "the workload has no entry no-a, no-b") in found


def test_a_request_may_begin_at_the_moment_at_which_another_ends() -> None:
    touching = [dataclasses.replace(SIX[0], end_ns=SIX[1].t0_ns), *SIX[1:]]
    assert _planned(touching, WARM) == []
    overlapping = [dataclasses.replace(SIX[0], end_ns=SIX[1].t0_ns + 1), *SIX[1:]]
    assert _planned(overlapping, WARM) == [("load.concurrency", "round 0: 2 requests in flight at concurrency 1")]
    later = [*SIX[:4], dataclasses.replace(SIX[4], end_ns=SIX[5].t0_ns + 1), SIX[5]]
    assert _planned(later, WARM) == [("load.concurrency", "round 0: 2 requests in flight at concurrency 1")]


def test_a_wave_was_in_flight_together_even_if_for_a_moment() -> None:
    wave = {**WARM, "load": "wave", "concurrency": 2, "entries": ["bench-one-en"], "repeats": 2, "seeds": "first"}
    pair = [
        dataclasses.replace(make_record(wave, "measure", 0, index, 0), t0_ns=start, scheduled_ns=start, end_ns=end)
        for index, (start, end) in enumerate(((0, 100 * MS), (100 * MS, 200 * MS)))
    ]
    assert _planned(pair, wave) == []
    late = [pair[0], dataclasses.replace(pair[1], t0_ns=100 * MS + 1)]
    assert _planned(late, wave) == [("load.wave", "round 0: the wave from index 0 was not in flight together")]


def _timed(records: Iterable[RequestRecord], *phases: Mapping[str, Any], **run: Any) -> list[tuple[str, str]]:
    document = {"clock": {"zero_utc": utc(0)}, "phases": [{**PHASE, "requests": 6, **phase} for phase in phases]}
    for phase in document["phases"]:
        for edge in ("start", "end"):
            phase.setdefault(f"{edge}_utc", utc(phase[f"{edge}_ns"]))
    evidence = _evidence(records, phases=tuple(document["phases"]), document=lambda path: document)
    evidence.run.update(run)
    return _told(timeline.check(evidence))


def test_a_phase_may_begin_and_end_with_its_requests() -> None:
    exact = {"start_ns": SIX[0].t0_ns, "end_ns": SIX[-1].end_ns}
    outside = ("phase.cover", "measure phase of B1, round 0: a request lies outside of it")
    assert _timed(SIX, exact) == []
    assert _timed(SIX, {**exact, "start_ns": exact["start_ns"] + 1}) == [outside]
    assert _timed(SIX, {**exact, "end_ns": exact["end_ns"] - 1}) == [outside]


def test_a_phase_is_long_enough_for_its_requests() -> None:
    whole = [dataclasses.replace(record, t0_ns=0, end_ns=100 * MS) for record in SIX[:1]]
    exact = {"start_ns": 0, "end_ns": 100 * MS, "requests": 1}
    assert _timed(whole, exact) == []
    short = "phase.too-short"
    assert short in dict(_timed(whole, {**exact, "end_ns": 100 * MS - 1}))  # its longest request, at concurrency 1
    twice = [*whole, dataclasses.replace(whole[0], request_id=SIX[1].request_id)]
    assert dict(_timed(twice, {**exact, "requests": 2})) == {  # each fits, both together do not
        short: "measure phase of B1, round 0: shorter than its requests allow at concurrency 1"
    }
    evidence = {**exact, "requests": 2, "end_ns": 99 * MS}
    wider = {**WARM, "concurrency": 4}
    assert short in dict(_timed(twice, evidence, profiles=[wider]))  # both together would fit, the longest does not


def test_the_clocks_of_a_phase_may_differ_by_two_seconds() -> None:
    phase = {"start_ns": 10_000 * MS, "end_ns": 11_000 * MS, "requests": 0}
    differs = ("phase.clock", "B1: its start differs between the two clocks")
    for off, found in ((2_000, []), (-2_000, [])):
        assert _timed((), {**phase, "start_utc": utc((10_000 + off) * MS)}) == found
    for off in (2_000 * MS + 1_000, -2_000 * MS - 1_000):
        assert _timed((), {**phase, "start_utc": utc(10_000 * MS + off)}) == [differs]


def test_an_hour_into_a_run_the_clocks_are_still_compared_to_the_second() -> None:
    phase = {"start_ns": 3_598_000 * MS, "end_ns": 3_599_000 * MS, "requests": 0}
    assert _timed((), phase) == []
    assert _timed((), {**phase, "end_utc": utc(3_601_001 * MS)})[0][0] == "phase.clock"


def test_phases_lie_within_the_run_give_or_take_two_seconds() -> None:
    phase = {"start_ns": 8_000 * MS, "end_ns": 9_000 * MS, "requests": 0}
    assert _timed((), phase, started_utc=utc(10_000 * MS), ended_utc=utc(9_000 * MS)) == []
    assert _timed((), phase, started_utc=utc(0), ended_utc=utc(7_000 * MS)) == []
    late, early = utc(10_000 * MS + 1_000), utc(7_000 * MS - 1_000)
    assert _timed((), phase, started_utc=late) == [("phase.clock", "B1: its start lies outside the run")]
    assert _timed((), phase, started_utc=utc(0), ended_utc=early) == [
        ("phase.clock", "B1: its end lies outside the run")
    ]


def test_a_phase_does_not_end_before_it_starts_and_none_starts_before_the_one_before() -> None:
    empty = {"start_ns": MS, "end_ns": MS, "requests": 0}
    assert _timed((), empty) == []
    assert ("phase.clock", "B1: ends before it starts") in _timed((), {**empty, "end_ns": 0})
    at_once = {**empty, "kind": "setup"}
    assert _timed((), empty, at_once) == []
    assert ("phase.clock", "phases are not in order of their start") in _timed((), empty, {**at_once, "start_ns": 0})


def _powers(mean: float, peak: float) -> list[str]:
    numbers = [
        {"id": f"b1.gpu.power.{name}", "value": value, "upper95": None}
        for name, value in (("mean", mean), ("peak", peak))
    ]
    documents = {
        paths.SUMMARY: {"numbers": numbers, "limitations": []}, paths.GATES: {"results": []}, paths.POLICY: {"waivers": []}
    }  # fmt: skip
    return [finding.code for finding in sense.check(_evidence(document=documents.__getitem__))]


def test_mean_power_may_equal_peak_power_but_for_rounding() -> None:
    assert _powers(100.0, 100.0) == []
    assert _powers(100.0 * (1 + 1e-9), 100.0) == []
    assert _powers(100.0 + 1e-6, 100.0) == ["summary.power"]


def test_of_a_long_placeholder_the_beginning_is_told() -> None:
    text = "TODO " + "x" * 90
    documents = {
        paths.SUMMARY: {"numbers": [], "limitations": [{"text": text, "owner": "project"}]}, paths.GATES: {"results": []},
        paths.POLICY: {"waivers": []},
    }  # fmt: skip
    found = _told(sense.check(_evidence(document=documents.__getitem__)))
    assert found == [("wording.placeholder", f"{text[:80]!r} says nothing")]
