"""SPDX licence expressions: bring one into canonical spelling, and decide one against a list of allowed licences.

Canonical spelling is `packaging`'s; the decision is ours: OR needs one allowed side, AND needs both, WITH needs an
allowed licence and an allowed exception.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass


def canonical(expression: str) -> str | None:
    """The canonical spelling of `expression`; None when it is no SPDX expression."""
    # Imported here: the offline verifier decides expressions, never spells them, and does without `packaging`.
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    try:
        return str(canonicalize_license_expression(expression))
    except InvalidLicenseExpression:
        return None


def is_allowed(expression: str, allowed: AbstractSet[str], exceptions: AbstractSet[str] = frozenset()) -> bool:
    """Whether a canonical expression can be satisfied with licences from `allowed` and exceptions from `exceptions`."""
    tokens = re.findall(r"[()]|[^\s()]+", expression)
    return _Decision(tokens=tokens, allowed=allowed, exceptions=exceptions).either()


@dataclass(kw_only=True)
class _Decision:
    """Recursive descent over the tokens of a valid expression; each method consumes what it decides."""

    tokens: list[str]
    allowed: AbstractSet[str]
    exceptions: AbstractSet[str]

    def either(self) -> bool:
        sides = [self.both()]
        while self.tokens[:1] == ["OR"]:
            self.tokens.pop(0)
            sides.append(self.both())
        return any(sides)

    def both(self) -> bool:
        sides = [self.one()]
        while self.tokens[:1] == ["AND"]:
            self.tokens.pop(0)
            sides.append(self.one())
        return all(sides)

    def one(self) -> bool:
        name = self.tokens.pop(0)
        if name == "(":
            inside = self.either()
            self.tokens.pop(0)  # the closing bracket, which canonical() has seen
            return inside
        if self.tokens[:1] != ["WITH"]:
            return name in self.allowed
        self.tokens.pop(0)
        return self.tokens.pop(0) in self.exceptions and name in self.allowed
