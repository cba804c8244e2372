"""What a person is told of a long run: how much work is left, and how long it takes where that is known."""

from __future__ import annotations

from qualification.progress import TimeLeft


def test_time_left_is_that_of_units_of_the_same_profile() -> None:
    left = TimeLeft()
    assert left.words(["EOS"]) == "1 unit of work"
    left.add("EOS", 90.0)
    left.add("RATE", 40.0)
    left.add("RATE", 50.0)
    assert left.words(["RATE", "RATE"]) == "2 units of work, about 1:30 min"
    assert left.words(["RATE", "EOS", "B1"]) == "3 units of work, about 2:15 min and 1 of which no like has been timed"
    assert left.words(["B1", "B3"]) == "2 units of work"
