"""SPDX expressions are spelled canonically and decided by their own logic."""

from __future__ import annotations

import pytest

from qualification.spdx import canonical, is_allowed, well_formed

ALLOWED = {"MIT", "BSD-3-Clause", "Apache-2.0"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mit", "MIT"),
        ("apache-2.0 or mit", "Apache-2.0 OR MIT"),
        ("Apache-2.0 WITH LLVM-exception", "Apache-2.0 WITH LLVM-exception"),
        ("BSD", None),
        ("MIT AND", None),
        ("", None),
    ],
)
def test_canonical(text: str, expected: str | None) -> None:
    assert canonical(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("GPL-3.0-only OR MIT", True),
        ("MIT OR GPL-3.0-only", True),
        ("GPL-3.0-only AND MIT", False),
        ("MIT AND GPL-3.0-only", False),
        ("MIT AND (GPL-3.0-only OR Apache-2.0)", True),
        ("(MIT AND GPL-3.0-only) OR BSD-3-Clause", True),
        ("MIT OR Apache-2.0 AND GPL-3.0-only", True),  # AND binds tighter
        ("(MIT OR Apache-2.0) AND GPL-3.0-only", False),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("Apache-2.0 WITH GCC-exception-3.1", False),
        ("GPL-3.0-only WITH LLVM-exception", False),
        ("GPL-3.0-only WITH LLVM-exception OR MIT", True),
    ],
)
def test_is_allowed(text: str, expected: bool) -> None:
    spelled = canonical(text)
    assert spelled is not None
    assert is_allowed(spelled, ALLOWED, {"LLVM-exception"}) is expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "MIT GPL-3.0-only",
        "MIT AND",
        "OR MIT",
        "MIT OR",
        "(MIT",
        "MIT)",
        "()",
        "MIT WITH",
        "MIT WITH LLVM-exception WITH LLVM-exception",
        "MIT AND OR MIT",
        "mit or gpl",
        "MIT/Apache-2.0",
        "MIT, GPL-3.0-only",
    ],
)
def test_what_is_no_expression_is_allowed_by_nothing(text: str) -> None:
    assert not is_allowed(text, ALLOWED, {"LLVM-exception"})
    assert not well_formed(text)


def test_deep_brackets_are_decided_or_refused_but_never_raise() -> None:
    assert is_allowed("(" * 50 + "MIT" + ")" * 50, ALLOWED)
    assert not is_allowed("(" * 5_000 + "MIT" + ")" * 5_000, ALLOWED)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("GPL-3.0-or-later WITH GCC-exception-3.1", True),
        ("GPL-3.0-or-later", False),
        ("GPL-3.0-or-later WITH LLVM-exception", False),
        ("MIT AND GPL-3.0-or-later WITH GCC-exception-3.1", True),
        ("MIT WITH GCC-exception-3.1", False),
    ],
)
def test_a_pair_can_be_allowed_where_its_licence_alone_is_not(text: str, expected: bool) -> None:
    assert is_allowed(text, {*ALLOWED, "GPL-3.0-or-later WITH GCC-exception-3.1"}) is expected
