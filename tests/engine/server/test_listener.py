"""The client behind the overload figures: what it takes for a starved player, a gap and a real-time factor."""

from __future__ import annotations

import pytest

from engine.contract import SAMPLE_RATE_HZ
from tests.engine.server.listener import STREAM_SECONDS, Listener

PART = 0.5  # seconds of audio


def listener(step: float, late: dict[int, float]) -> Listener:
    """Parts of half a second, one every `step` seconds; `late` holds the delay of some of them, by their number."""
    parts = int(STREAM_SECONDS / PART)
    times = [10 + number * step + late.get(number, 0.0) for number in range(parts)]
    return Listener(seed=0, at=[(at, int((number + 1) * PART * SAMPLE_RATE_HZ)) for number, at in enumerate(times)])


def test_a_stream_ahead_of_its_player_starves_nowhere() -> None:
    calm = listener(0.3, {})
    assert calm.underruns == 0
    assert calm.rtf == pytest.approx(0.6)
    assert max(calm.gaps) == pytest.approx(300)
    assert calm.heard == STREAM_SECONDS
    assert not calm.whole, "it must have told that it ended at its ceiling"
    calm.reason = "length"
    assert calm.whole


def test_a_delay_that_the_buffer_bears_is_a_gap_and_one_beyond_it_an_underrun() -> None:
    assert listener(0.3, {10: 0.2}).underruns == 0  # 2 s of sound are ahead by then
    assert max(listener(0.3, {10: 0.2}).gaps) == pytest.approx(500)
    assert listener(0.3, {10: 2.5}).underruns == 1


def test_a_stream_slower_than_its_sound_starves_at_every_part() -> None:
    slow = listener(0.6, {})
    assert slow.rtf == pytest.approx(1.2)
    assert slow.underruns == 21  # of the parts that end between the marks, 1 s and 11 s
