"""Each step of the verifier says of every tampered bundle what is kept in `findings.json`, no more and no less."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from qualification import strictjson
from qualification.gates.table import GATES
from qualification.verify.verifier import steps
from tests.qualification.tamper import findings


@cache
def _kept() -> dict[str, Any]:
    document: dict[str, Any] = strictjson.load(findings.KEPT)
    return document


LONG = ("authenticity", "documents", "recomputation")  # seconds each; their codes are looked at for every tamper anyway


@pytest.mark.parametrize(
    "step", [pytest.param(step, marks=pytest.mark.slow if step in LONG else ()) for step in findings.STEPS]
)
def test_says_what_it_said(step: str) -> None:
    assert findings.said(step) == _kept()[step], "if that is meant: python -m tests.qualification.tamper.findings"


def test_every_step_is_looked_at() -> None:
    made = findings.bundles()
    assert [name for name, _ in steps(made.views[findings.UNTOUCHED], made.trust, GATES, None)] == [*findings.STEPS]
    assert _kept().keys() == set(findings.STEPS)
    assert all(_kept()[step] for step in findings.STEPS), "a step that nothing makes speak"
