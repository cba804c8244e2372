"""Phases carry both clocks, and one that breaks is logged all the same."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import pytest

from qualification import schema
from qualification.bench.clock import Clock
from qualification.bench.phases import PhaseLog


def test_phases_are_logged_in_order_with_both_clocks() -> None:
    log = PhaseLog(Clock())
    with log.phase("setup", "start the subject"):
        time.sleep(0.02)
    with log.phase("measure", "one in flight", profile="B1", round=0) as phase:
        phase.requests = 7
    document = log.document("run-0001")
    schema.validate("phases", document, "phases.json")
    setup, measure = document["phases"]
    assert setup["end_ns"] - setup["start_ns"] >= 20_000_000
    assert measure["start_ns"] >= setup["end_ns"]
    assert (measure["requests"], setup["requests"]) == (7, None)
    zero = datetime.fromisoformat(document["clock"]["zero_utc"])
    for edge in ("start", "end"):
        there = zero + timedelta(microseconds=setup[f"{edge}_ns"] / 1_000)
        assert abs(there - datetime.fromisoformat(setup[f"{edge}_utc"])) < timedelta(milliseconds=50)


def test_a_phase_that_breaks_ends_when_it_breaks() -> None:
    log = PhaseLog(Clock())

    def cut_short() -> None:
        with log.phase("measure", "cut short", profile="B1", round=0) as phase:
            phase.requests = 3
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cut_short()
    assert [(entry.name, entry.requests) for entry in log.phases] == [("cut short", 3)]
