"""Schedule, subjects, steadiness, and the hash of what is asked."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, norm

from qualification.bench.raw import RequestRecord
from qualification.controlled import record
from qualification.controlled.asking import SAMPLING, hashes
from qualification.controlled.schedule import planned_runs
from qualification.controlled.stability import stability, trend
from qualification.controlled.subjects import options_for, parse_spec
from qualification.errors import UsageError
from qualification.evidence_view import EvidenceView
from qualification.inputs import Options
from qualification.subjects.official_sampling import from_arguments, to_arguments
from qualification.tamper.good import Good


def test_twelve_runs_by_turns() -> None:
    runs = planned_runs(("B1", "B3", "B6"), 2)
    assert len(runs) == 12
    assert [run.number for run in runs] == list(range(1, 13))
    for _, of_profile in groupby(runs, key=lambda run: run.profile):
        assert "".join(run.subject for run in of_profile) == "abba"
    six = planned_runs(("B1",), 6)
    assert "".join(run.subject for run in six) == "abbaabbaabba"
    assert len({(run.subject, run.round) for run in six}) == 12


def test_subjects_become_options() -> None:
    shared = Options(model=Path("m"), rounds=2)
    engine = options_for(parse_spec("engine,precision=int8,device=cuda"), shared)
    assert (engine.model, engine.precision, engine.device, engine.rounds) == (Path("m"), "int8", "cuda", 2)
    flagged = options_for(parse_spec("engine,precision=bf16,--graphs=off"), shared)
    assert flagged.engine_command[-4:] == ("--precision", "bf16", "--graphs", "off")
    assert (flagged.precision, flagged.model) == (None, Path("m"))
    official = options_for(parse_spec("official,precision=fp32,python=/x/python,model=n"), shared)
    assert official.engine_command == (
        "/x/python", "-m", "qualification.subjects.official_server", "--model", "n", "--precision", "fp32",
    )  # fmt: skip
    assert official.model == Path("n")
    assert options_for(parse_spec("official"), shared).engine_command[0] == sys.executable
    image = options_for(parse_spec("image=x/y@sha256:0"), shared)
    assert (image.image, image.model) == ("x/y@sha256:0", None)
    assert options_for(parse_spec("endpoint=http://h:1"), shared).endpoint == "http://h:1"
    assert options_for(parse_spec("command=run, me --a=b"), shared).engine_command == ("run,", "me", "--a=b")


def test_a_label_tells_no_path() -> None:
    assert parse_spec("official,precision=fp32,python=/home/me/python,model=/m").label == "official precision=fp32"
    assert parse_spec("command=/home/me/run --x").label == "command"
    assert parse_spec("engine,precision=int8,--graphs=off").label == "engine precision=int8 --graphs=off"


@pytest.mark.parametrize(
    "text", ["", "image", "endpoint", "engine=x", "official,--x", "engine,colour=red", "engine,model="]
)
def test_what_names_no_subject(text: str) -> None:
    with pytest.raises(UsageError):
        parse_spec(text)


def test_the_sampling_sent_is_the_wires_own_default_in_full() -> None:
    assert from_arguments(to_arguments({})) == SAMPLING
    assert to_arguments(SAMPLING) == to_arguments({})


def test_the_hash_of_requests_moves_with_everything_asked(good_bundle: Good) -> None:
    view = EvidenceView(good_bundle.root)
    before = hashes(view)
    for place, value in ((("parameters", "max_duration_seconds"), 9.0), (("parameters", "sampling"), dict(SAMPLING))):
        other = EvidenceView(good_bundle.root)
        other.run[place[0]][place[1]] = value
        assert hashes(other)["requests"] != before["requests"]
    other = EvidenceView(good_bundle.root)
    other.run["profiles"][2]["repeats"] += 1
    assert hashes(other)["requests"] != before["requests"]
    assert hashes(other)["workload"] == before["workload"]


def _timed(good_bundle: Good, factors: list[float]) -> list[RequestRecord]:
    """Measured requests one after the other, with these real-time factors."""
    [first] = [r for r in EvidenceView(good_bundle.root).records(profile="B1") if r.index == 0]
    made, now = [], 0
    for index, factor in enumerate(factors):
        wall = round(factor * first.audio_seconds * 1e9)
        made.append(replace(first, index=index, t0_ns=now, end_ns=now + wall))
        now += wall
    return made


def test_a_run_that_slows_down_is_drifting(good_bundle: Good) -> None:
    steady = [1.0 + 0.01 * math.sin(7 * n) for n in range(40)]
    assert stability(_timed(good_bundle, steady)).verdict == "stable"
    slower = [value * (1 + n / 200) for n, value in enumerate(steady)]
    found = stability(_timed(good_bundle, slower))
    assert found.verdict == "drifting"
    assert found.drift is not None
    assert 0.1 < found.drift < 0.2
    slightly = [value * (1 + n / 4_000) for n, value in enumerate(sorted(steady))]
    small = stability(_timed(good_bundle, slightly))
    assert (small.verdict, small.p_value is not None and small.p_value < 0.01) == ("stable", True)
    assert stability(_timed(good_bundle, steady[:7])).verdict == "too_few"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=10, max_size=60))
def test_the_trend_agrees_with_a_second_implementation(values: list[int]) -> None:
    plain = kendalltau(range(len(values)), values, method="asymptotic").pvalue  # without correction for continuity
    order = np.sign(np.subtract.outer(values, values))
    score = abs(np.tril(order).sum())
    if score == 0:
        assert trend(values) == 1.0
    else:
        deviation = score / norm.isf(plain / 2)
        assert trend(values) == pytest.approx(2 * norm.sf((score - 1) / deviation), rel=1e-6)


def test_delivery_is_seen_and_not_believed(good_bundle: Good) -> None:
    view = EvidenceView(good_bundle.root)
    facts = record.subject_facts(view)
    assert (facts["delivery"], facts["ends"]) == ("progressive", "known")
    late = EvidenceView(good_bundle.root)
    late.__dict__["all_records"] = tuple(
        replace(r, packets=tuple(replace(p, at_ns=r.end_ns) for p in r.packets), finish_reason=None)
        for r in view.all_records
    )
    facts = record.subject_facts(late)
    assert (facts["delivery"], facts["ends"]) == ("buffered", "unknown")
