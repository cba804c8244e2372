"""A stage's learning rate and its two ends."""

from __future__ import annotations

import pytest

from recipe.schedule import FLOOR, Budget, Schedule


def test_rate_rises_then_falls_to_the_floor_and_the_stage_is_over() -> None:
    schedule = Schedule(Budget(steps=100, seconds=1e9, warmup_steps=10, learning_rate=1.0))
    assert schedule.learning_rate() == pytest.approx(0.1, rel=0.01)
    assert not schedule.over
    schedule.step = 10
    top = schedule.learning_rate()
    schedule.step = 50
    assert top > schedule.learning_rate() > FLOOR
    schedule.step = 100
    assert schedule.learning_rate() == pytest.approx(FLOOR)
    assert schedule.over


def test_time_ends_a_stage_too(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("recipe.schedule.time.monotonic", lambda: clock[0])
    schedule = Schedule(Budget(steps=100, seconds=8.0, warmup_steps=1, learning_rate=1.0))
    clock[0] = 104.0
    assert schedule.progress == 0.5
    assert not schedule.over
    clock[0] = 109.0
    assert schedule.over
