"""SPDX expressions are spelled canonically and decided by their own logic."""

from __future__ import annotations

import pytest

from qualification.spdx import canonical, is_allowed

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
