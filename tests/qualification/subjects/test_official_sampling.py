"""What the official package is told, read back, is what was asked; what it cannot be told is refused."""

from __future__ import annotations

from typing import Any

import pytest

from qualification.subjects.official_sampling import from_arguments, to_arguments

SAMPLED = {"strategy": "sample", "temperature": 0.7, "top_p": 0.8, "top_k": 20}
CASES: list[dict[str, Any]] = [
    {**SAMPLED, "repetition_penalty": 1.1, "predictor": {**SAMPLED, "top_k": 5, "temperature": 0.3}},
    {"strategy": "greedy", "repetition_penalty": 1.0, "predictor": {**SAMPLED}},
    {**SAMPLED, "repetition_penalty": 1.05, "predictor": {"strategy": "greedy"}},
]


@pytest.mark.parametrize("sampling", CASES)
def test_there_and_back(sampling: dict[str, Any]) -> None:
    assert from_arguments(to_arguments(sampling)) == sampling


def test_defaults_are_the_wire_s_and_explicit() -> None:
    assert to_arguments({}) == {
        "do_sample": True, "temperature": 0.9, "top_p": 1.0, "top_k": 50,
        "subtalker_dosample": True, "subtalker_temperature": 0.9, "subtalker_top_p": 1.0, "subtalker_top_k": 50,
        "repetition_penalty": 1.05,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("sampling", "message"),
    [
        ({"min_p": 0.1}, "no field min_p"),
        ({"predictor": {"repetition_penalty": 1.0}}, "predictor has no field repetition_penalty"),
        ({"strategy": "beam"}, "neither sample nor greedy"),
        ({"strategy": "greedy", "top_k": 3}, "greedy takes no"),
    ],
)
def test_what_cannot_be_told_is_refused(sampling: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        to_arguments(sampling)
