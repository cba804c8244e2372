"""SPDX licence expressions: bring one into canonical spelling, and decide one against a list of allowed licences.

Canonical spelling is `packaging`'s; the decision is ours: OR needs one allowed side, AND needs both, WITH needs an
allowed licence and an allowed exception, or the pair by its whole name: an exception may make acceptable what its
licence alone is not. A text that is no expression is allowed by nothing.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

MAX_BRACKETS = 64  # no licence needs more, and recursion must end
_OPERATORS = frozenset({"AND", "OR", "WITH", "(", ")"})
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")


class _MalformedError(Exception):
    """The text is no expression."""


def canonical(expression: str) -> str | None:
    """The canonical spelling of `expression`; None when it is no expression of licences that SPDX knows."""
    from packaging.licenses import (  # here, because the verifier decides without ever having to spell
        InvalidLicenseExpression,
        canonicalize_license_expression,
    )

    try:
        return str(canonicalize_license_expression(expression))
    except InvalidLicenseExpression:
        return None


def well_formed(expression: str) -> bool:
    """Whether the text is an expression by its grammar; the names in it may be unknown to SPDX."""
    try:
        _Decision(tokens=_tokens(expression), allowed=frozenset(), exceptions=frozenset()).whole()
    except _MalformedError:
        return False
    return True


def is_allowed(expression: str, allowed: AbstractSet[str], exceptions: AbstractSet[str] = frozenset()) -> bool:
    """Whether an expression can be satisfied with licences from `allowed` and exceptions from `exceptions` alone.

    Names compare exactly, as `canonical` spells them. False for a text that is no expression.
    """
    try:
        return _Decision(tokens=_tokens(expression), allowed=allowed, exceptions=exceptions).whole()
    except _MalformedError:
        return False


def _tokens(expression: str) -> list[str]:
    tokens = re.findall(r"[()]|[^\s()]+", expression)
    if tokens.count("(") > MAX_BRACKETS:
        raise _MalformedError
    return tokens


@dataclass(kw_only=True)
class _Decision:
    """Recursive descent over the tokens; each method consumes what it decides, and both sides are always read.

    Raises:
        _MalformedError: a token is missing, left over or out of place.
    """

    tokens: list[str]
    allowed: AbstractSet[str]
    exceptions: AbstractSet[str]

    def whole(self) -> bool:
        result = self.either()
        if self.tokens:
            raise _MalformedError
        return result

    def either(self) -> bool:
        sides = [self.both()]
        while self.follows("OR"):
            sides.append(self.both())
        return any(sides)

    def both(self) -> bool:
        sides = [self.one()]
        while self.follows("AND"):
            sides.append(self.one())
        return all(sides)

    def one(self) -> bool:
        if self.follows("("):
            inside = self.either()
            if not self.follows(")"):
                raise _MalformedError
            return inside
        licence = self.name()
        if not self.follows("WITH"):
            return licence in self.allowed
        exception = self.name()
        pair = f"{licence} WITH {exception}"
        return pair in self.allowed or (licence in self.allowed and exception in self.exceptions)

    def follows(self, token: str) -> bool:
        """Consume `token` if it is next."""
        if self.tokens[:1] != [token]:
            return False
        self.tokens.pop(0)
        return True

    def name(self) -> str:
        if not self.tokens or self.tokens[0] in _OPERATORS or not _NAME.fullmatch(self.tokens[0]):
            raise _MalformedError
        return self.tokens.pop(0)
