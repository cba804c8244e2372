"""Where the relations of telemetry begin to refuse: what lies on a bound passes, the next step does not."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from qualification import paths
from qualification.bench.raw import GpuSample, TelemetrySample
from qualification.evidence_view import EvidenceView
from qualification.tamper.good_documents import make_run, utc
from qualification.verify import timeline

MS: Final = 1_000_000
MIB: Final = 1 << 20
GPU: Final = GpuSample(
    uuid="GPU-0", power_milliwatts=100_000, energy_millijoules=0, memory_used_bytes=None, process_memory_bytes=None,
    processes=1, subject_processes=1, utilization_percent=None, sm_clock_mhz=None, memory_clock_mhz=None,
    temperature_celsius=None, throttle_reasons=None,
)  # fmt: skip
PLAIN: Final = TelemetrySample(
    at_ns=0, processes=1, rss_bytes=64 * MIB, pss_bytes=None, cpu_ns=0, machine_cpu_ns=0, harness_cpu_ns=0,
    package_energy_microjoules=None, gpus=(),
)  # fmt: skip


def _at(*moments: int, **changes: Sequence[Any]) -> list[TelemetrySample]:
    """Samples at these milliseconds; each change gives a field's values, one a sample."""
    columns = [{name: values[number] for name, values in changes.items()} for number in range(len(moments))]
    return [
        dataclasses.replace(PLAIN, at_ns=moment * MS, **column) for moment, column in zip(moments, columns, strict=True)
    ]


def _found(samples: Sequence[TelemetrySample], **more: Any) -> list[tuple[str, str]]:
    """What the step says of telemetry of one session, at two processors and without a phase."""
    documents = {
        paths.PHASES: {"clock": {"zero_utc": utc(0)}, "phases": []},
        paths.ENVIRONMENT: {"machine": {"cpus": 2}},
        paths.IDENTITY: {"files": more.pop("files", [])},
    }
    moments = [sample.at_ns for sample in samples]
    values = {
        "run": {**make_run(), "profiles": [], "ended_utc": utc(0)}, "phases": (), "telemetry": tuple(samples),
        "telemetry_by_session": (tuple(samples),), "moments": moments,
        "moments_of_session": lambda _: tuple(moments), "interruptions": (), "records": lambda **_: (),
        "samplers": ({"number": 1, "first_ns": moments[0], "last_ns": moments[-1], "samples": len(moments), "fault": None},)
        if moments else (),
        "document": documents.__getitem__,
    }  # fmt: skip
    findings = timeline.check(cast(EvidenceView, SimpleNamespace(**(values | more))))
    return [(finding.code, finding.detail) for finding in findings]


def test_only_a_process_must_be_sampled() -> None:
    assert _found(()) == [("telemetry.missing", "a process was qualified and nothing was sampled")]
    run = {**make_run(), "profiles": [], "ended_utc": utc(0)}
    assert _found((), run={**run, "subject": {**run["subject"], "kind": "endpoint"}}) == []


def test_no_two_samples_share_a_moment() -> None:
    assert _found(_at(0, 100)) == []
    assert ("telemetry.order", "samples are out of order") in _found(_at(100, 100))


def test_a_sampling_process_wrote_what_lies_here() -> None:
    samples = _at(0, 100, 200, 300)
    one = {"number": 1, "first_ns": 0, "last_ns": 100 * MS, "samples": 2, "fault": None}
    two = {"number": 2, "first_ns": 200 * MS, "last_ns": 300 * MS, "samples": 2, "fault": None}
    assert _found(samples, samplers=(one, two)) == []
    fewer = ("telemetry.count", "session 2: 3 samples were written and 2 are here")
    assert _found(samples, samplers=(one, {**two, "samples": 3})) == [fewer]
    unowned = ("telemetry.count", "2 samples belong to no sampling process")
    assert _found(samples, samplers=(one,)) == [unowned]
    assert _found(samples, samplers=(one,), interruptions=({"cause": "killed"},)) == []
    assert _found(samples, samplers=(one,), interruptions=({"cause": "subject"},)) == [unowned]


@pytest.mark.parametrize(
    ("gap", "found"),
    [
        (200 * MS, []),
        (200 * MS + 1, [("telemetry.jitter", False, "P: 1 gaps over 200 ms, the longest 200 ms")]),
        (1_000 * MS, [("telemetry.jitter", False, "P: 1 gaps over 200 ms, the longest 1000 ms")]),
        (1_000 * MS + 1, [("telemetry.cover", True, "P: 1 gaps over 200 ms, the longest 1000 ms")]),
        (9_000_000 * MS, [("telemetry.cover", True, "P: 1 gaps over 200 ms, the longest 9000000 ms")]),
    ],
)
def test_a_gap_is_told_over_200_ms_and_refused_over_a_second(gap: int, found: list[tuple[str, bool, str]]) -> None:
    moments = [0, 100 * MS, 100 * MS + gap, 200 * MS + gap]
    phase = {"name": "P", "start_ns": 0, "end_ns": moments[-1]}
    told = [(finding.code, finding.refuses, finding.detail) for finding in timeline.coverage(phase, moments)]
    assert told == found


def test_a_fault_of_the_sampler_that_is_told_is_no_cut() -> None:
    phase = {"name": "P", "start_ns": 0, "end_ns": 5_000 * MS}
    [finding] = timeline.coverage(phase, [0, 100 * MS], told=True)
    assert (finding.code, finding.refuses) == ("telemetry.jitter", False)
    silent = [dataclasses.replace(sample, rss_bytes=None, pss_bytes=None, cpu_ns=None) for sample in _at(0, 100)]
    record = {"number": 1, "first_ns": 0, "last_ns": 100 * MS, "samples": 2, "fault": None}
    assert [code for code, _ in _found(silent, samplers=(record,))][:1] == ["telemetry.memory"]
    assert _found(silent, samplers=({**record, "fault": "The telemetry process ended with status -9."},)) == []


def test_only_measured_phases_must_be_covered() -> None:
    phase = {"name": "P", "start_ns": 0, "end_ns": 9_000 * MS, "profile": None, "round": None}
    samples = _at(0, 8_999)
    assert _found(samples, phases=({**phase, "kind": "setup"},)) == []
    assert "telemetry.cover" in dict(_found(samples, phases=({**phase, "kind": "measure"},)))


def test_processor_time_is_that_of_the_processors_give_or_take_a_sample() -> None:
    most = 2 * (1_000 + 200) * MS
    assert _found(_at(0, 500, 1_000, cpu_ns=[0, 0, most])) == []
    told = "2.4 s of processor time in 1.0 s on 2 processors"
    assert _found(_at(0, 500, 1_000, cpu_ns=[0, 0, most + 1])) == [("telemetry.cpu", told)]
    assert _found(_at(0, 500, 1_000, cpu_ns=[7, 7, most + 7])) == []
    assert _found(_at(0, 500, 1_000, 2_000, cpu_ns=[None, 0, most, None])) == [
        ("telemetry.cpu", "2.4 s of processor time in 0.5 s on 2 processors")
    ]
    assert _found(_at(0, cpu_ns=[None])) == []


def test_memory_has_a_floor() -> None:
    under = "a sample under 8 MiB: no engine runs in so little"
    assert _found(_at(0, 100, rss_bytes=[8 * MIB, 64 * MIB])) == []
    assert _found(_at(0, 100, rss_bytes=[8 * MIB - 1, 64 * MIB])) == [("telemetry.memory", under)]
    assert _found(_at(0, 100, rss_bytes=[None, 64 * MIB])) == []
    assert _found(_at(0, rss_bytes=[None])) == [("telemetry.memory", under)]


def test_proportional_memory_lies_between_its_floor_and_resident_memory() -> None:
    under = "proportional memory under 1 MiB: no engine runs in so little"
    over = "proportional memory is larger than resident memory"
    assert _found(_at(0, 100, pss_bytes=[1 * MIB, None])) == []
    assert _found(_at(0, 100, pss_bytes=[1 * MIB - 1, None])) == [("telemetry.memory", under)]
    assert _found(_at(0, 100, pss_bytes=[64 * MIB, None])) == []
    assert _found(_at(0, 100, pss_bytes=[64 * MIB + 1, None])) == [("telemetry.memory", over)]


def _files(weights: int) -> list[dict[str, Any]]:
    return [
        {"role": "weights", "bytes": weights},
        {"role": "weights", "bytes": None},
        {"role": "tokenizer", "bytes": 1 << 40},
    ]


def test_the_peak_holds_half_the_weights_wherever_they_lie() -> None:
    held = {"rss_bytes": [32 * MIB, 64 * MIB]}
    assert _found(_at(0, 100, **held), files=_files(128 * MIB)) == []
    told = f"at its peak {64 * MIB} bytes, less than half of {128 * MIB + 1} bytes of weights"
    assert _found(_at(0, 100, **held), files=_files(128 * MIB + 1)) == [("telemetry.memory", told)]
    for process, used, found in ((64, None, []), (None, 64, []), (64, 1, []), (63, 64, ["telemetry.memory"])):
        gpu = dataclasses.replace(
            GPU,
            power_milliwatts=None,
            process_memory_bytes=process and process * MIB,
            memory_used_bytes=used and used * MIB,
        )
        seen = _found(_at(0, 100, **held, gpus=[(), (gpu,)]), files=_files(256 * MIB))
        assert [code for code, _ in seen] == found
    unknown = dataclasses.replace(GPU, power_milliwatts=None)
    assert _found(_at(0, 100, **held, gpus=[(), (unknown,)]), files=_files(128 * MIB)) == []
    assert "telemetry.memory" in dict(_found(_at(0, 100, **held, gpus=[(), (unknown,)]), files=_files(128 * MIB + 1)))


def test_counters_stand_still_or_run_forwards() -> None:
    for name, field in (("processor packages", "package_energy_microjoules"), ("processors", "machine_cpu_ns")):
        assert _found(_at(0, 100, 200, **{field: [5, 5, 6]})) == []
        assert _found(_at(0, 100, 200, **{field: [5, None, 5]})) == []
        told = [("telemetry.counter", f"the counter of {name} runs backwards")]
        assert _found(_at(0, 100, 200, **{field: [5, None, 4]})) == told
    gpus = [(dataclasses.replace(GPU, power_milliwatts=None, energy_millijoules=value),) for value in (5, 5, 4)]
    assert _found(_at(0, 100, 200, gpus=gpus)) == [("telemetry.counter", "the counter of GPU-0 runs backwards")]
    assert _found(_at(0, 100, gpus=gpus[:2])) == []


def _drawn(counted: int, *moments: int, watts: int = 100, more: Sequence[int] = ()) -> list[tuple[str, str]]:
    """Samples of an accelerator that reports `watts` and counts `counted` millijoules in the first second after 0."""
    told = [*(counted * moment // 1_000 for moment in moments), *more]
    gpus = [(dataclasses.replace(GPU, energy_millijoules=value, power_milliwatts=watts * 1_000),) for value in told]
    return _found(_at(*moments, *range(moments[-1] + 2_000, moments[-1] + 2_000 + len(more)), gpus=gpus))


def test_the_energy_counter_agrees_with_the_power_but_for_slack_and_lag() -> None:
    """Over 10 s without a hole: 15 % and the one second of lag, which is another 10 %."""
    seconds = tuple(range(0, 10_001, 1_000))
    assert _drawn(100_000, *seconds) == []
    assert _drawn(125_000, *seconds) == []
    assert _drawn(75_000, *seconds) == []
    high = "the energy counter of GPU-0 gives 125.1 W, the power that was sampled 100.0 W"
    assert _drawn(125_100, *seconds) == [("telemetry.power", high)]
    low = "the energy counter of GPU-0 gives 74.9 W, the power that was sampled 100.0 W"
    assert _drawn(74_900, *seconds) == [("telemetry.power", low)]


def test_power_over_a_hole_is_left_out() -> None:
    assert _drawn(100_000, 0, 1_000, 5_000) == []
    assert _drawn(100_000, 0) == []
    assert _drawn(100_000, 0, 1_001) == []
