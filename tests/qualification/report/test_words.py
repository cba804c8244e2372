"""Numbers read as people expect, and every outcome and tier has its words."""

from __future__ import annotations

import pytest

from qualification.report import words
from qualification.report.words import figure, grouped, plural, seconds, size
from qualification.results import Outcome
from qualification.workload import load_workload


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "ms", "–"),
        (0, "count", "0"),
        (12345, "count", "12\u202f345"),
        (0.16489, "ratio", "0.165"),
        (0.5, "ratio", "0.5"),
        (2.0, "ratio", "2"),
        (48.06, "ms", "48.1\u202fms"),
        (48.0, "ms", "48\u202fms"),
        (1234.0, "ms", "1.23\u202fs"),
        (0.0198, "share", "1.98\u202f%"),
        (1.0, "share", "100\u202f%"),
        (906_000_000, "bytes", "906\u202fMB"),
        (1_500_000_000, "bytes", "1.5\u202fGB"),
        (12.06, "s", "12.1\u202fs"),
        (0.00001, "ratio", "1.0e-05"),
        (0.5, "count", "0.5"),
    ],
)
def test_figure(value: float | None, unit: str, text: str) -> None:
    assert figure(value, unit) == text


def test_small_words() -> None:
    assert (plural(1, "gate"), plural(2, "gate")) == ("1 gate", "2 gates")
    assert (seconds(5.04), seconds(125.2)) == ("5.0\u202fs", "2\u202fmin 05\u202fs")
    assert (size(199), grouped(1_000)) == ("199\u202fB", "1\u202f000")


def test_every_outcome_has_its_own_word_and_sign() -> None:
    assert set(words.OUTCOMES) == set(Outcome)
    assert len({wording.word for wording in words.OUTCOMES.values()}) == len(Outcome)
    assert len({wording.sign for wording in words.OUTCOMES.values()}) == len(Outcome)


def test_every_language_of_the_workload_has_a_name() -> None:
    assert {entry.language for entry in load_workload().entries} <= set(words.LANGUAGES)
