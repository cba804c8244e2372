"""Request bodies as JSON, read strictly: one meaning for every byte string, or a refusal.

Refused: invalid UTF-8, duplicate keys, NaN and Infinity, numbers beyond a double, lone surrogates, nesting beyond
`MAX_DEPTH`, anything after the value, anything but an object at the top. Not covered: what the fields mean (`bodies`).
"""

from __future__ import annotations

import json
import math
from typing import Any

MAX_DEPTH = 16
MAX_INTEGER_DIGITS = 64


class MalformedJson(ValueError):
    """The body is not the JSON that this server reads; the message says where and holds nothing of the content."""


def read_object(body: bytes) -> dict[str, Any]:
    """Parse one JSON object.

    Raises:
        MalformedJson: any rule of this module is broken.
    """
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_int=_integer,
            parse_float=_number,
        )
    except UnicodeDecodeError as error:
        raise MalformedJson(f"the body is not UTF-8 (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise MalformedJson(f"the body is not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise MalformedJson(f"the body is nested deeper than {MAX_DEPTH} levels") from None
    if not isinstance(value, dict):
        raise MalformedJson("the body is not a JSON object")
    _check(value, 1)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise MalformedJson("an object has the same key twice")
    return found


def _no_constant(name: str) -> Any:
    raise MalformedJson(f"{name} is not a JSON number")


def _integer(digits: str) -> int:
    if len(digits) > MAX_INTEGER_DIGITS:
        raise MalformedJson(f"an integer has more than {MAX_INTEGER_DIGITS} digits")
    return int(digits)


def _number(digits: str) -> float | int:
    """JSON has one kind of number: 5.0 is the integer 5."""
    value = float(digits)
    if not math.isfinite(value):
        raise MalformedJson("a number is too large for a double")
    return int(value) if value.is_integer() else value


def _check(value: Any, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise MalformedJson(f"the body is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, str):
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise MalformedJson("a string has a lone surrogate escape")
    elif isinstance(value, dict):
        for key, child in value.items():
            _check(key, depth)
            _check(child, depth + 1)
    elif isinstance(value, list):
        for child in value:
            _check(child, depth + 1)
