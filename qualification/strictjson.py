"""Strict JSON in, canonical JSON out.

In: UTF-8 without a byte-order mark; no duplicate key, NaN, infinity (also none by overflow, such as `1e400`), integer
outside 64 bits, lone surrogate, or nesting deeper than `MAX_DEPTH`. Out: sorted keys, UTF-8, one newline at the end, and
a file that is created exclusively, so that nothing is ever written twice.
What a document may hold is the business of `schema`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Never

from qualification.errors import BundleError, StrictJsonError

MAX_DEPTH = 32
MAX_INTEGER = 2**63 - 1
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89abABcdefCDEF]")
_BOM = b"\xef\xbb\xbf"


def loads(data: bytes, name: str) -> Any:
    """Parse one JSON text; `name` (usually a file) opens every error message.

    Raises:
        StrictJsonError: with the reason, for anything outside the rules above.
    """
    text = _decode(data, name)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_bounded,
        )
    except RecursionError:
        raise StrictJsonError(f"{name}: nested deeper than {MAX_DEPTH} levels; flatten it") from None
    except json.JSONDecodeError as error:  # its words differ between Python versions
        raise StrictJsonError(f"{name}: not JSON from line {error.lineno}, column {error.colno} on") from error
    except ValueError as error:
        raise StrictJsonError(f"{name}: {error}") from error
    _check_depth(value, name)
    if _ESCAPED_SURROGATE.search(text):
        _check_unicode(value, name)
    return value


def load(path: Path, name: str | None = None) -> Any:
    """Parse the file at `path`. Raises `StrictJsonError`, or `OSError` where it cannot be read."""
    return loads(path.read_bytes(), name or path.name)


def loads_lines(data: bytes, name: str) -> tuple[Any, ...]:
    """Parse JSON Lines: one value a line, every line ended by a newline, no blank line.

    Raises:
        StrictJsonError: naming the line, counted from 1.
    """
    if data and not data.endswith(b"\n"):
        raise StrictJsonError(f"{name}: the last line has no newline; the file looks truncated")
    return tuple(loads(line, f"{name}:{number}") for number, line in enumerate(_lines(data), start=1))


def dumps(value: Any) -> bytes:
    """A document in canonical form: sorted keys, two spaces of indent, UTF-8, newline-ended."""
    return _encode(value, indent=2)


def dumps_line(value: Any) -> bytes:
    """One line of a JSON Lines file in canonical form."""
    return _encode(value, indent=None)


def write(path: Path, value: Any) -> None:
    """Write a document once. Raises `BundleError` where the file exists already."""
    write_once(path, dumps(value))


def write_lines(path: Path, values: Iterable[Any]) -> None:
    """Write a JSON Lines file once. Raises `BundleError` where the file exists already."""
    write_once(path, b"".join(dumps_line(value) for value in values))


def write_once(path: Path, data: bytes) -> None:
    """Create `path` (and its directory) with `data`; never overwrite.

    Raises:
        BundleError: where the file exists already.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("xb") as stream:
            stream.write(data)
    except FileExistsError:
        raise BundleError(f"{path} exists already; evidence is written once, choose another directory") from None


def _decode(data: bytes, name: str) -> str:
    if data.startswith(_BOM):
        raise StrictJsonError(f"{name}: starts with a byte-order mark; save it as plain UTF-8")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StrictJsonError(f"{name}: not UTF-8 at byte {error.start}; save it as UTF-8") from error


def _lines(data: bytes) -> Iterator[bytes]:
    yield from data.split(b"\n")[:-1]


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {repeated!r} appears twice in one object; keep one")
    return result


def _refuse_constant(text: str) -> Never:
    raise ValueError(f"{text} is no JSON number; write null or leave the value out")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} overflows to infinity; write a finite number")
    return value


def _bounded(text: str) -> int:
    value = int(text) if len(text) <= 20 else None
    if value is None or not -MAX_INTEGER <= value <= MAX_INTEGER:
        raise ValueError(f"integer {text[:40]} does not fit 64 bits")
    return value


def _check_depth(value: Any, name: str) -> None:
    level = _containers((value,))
    for _ in range(MAX_DEPTH - 1):
        if not level:
            return
        level = [inner for outer in level for inner in _containers(_children(outer))]
    if any(level):  # at the last level allowed, and with something inside
        raise StrictJsonError(f"{name}: nested deeper than {MAX_DEPTH} levels; flatten it")


def _containers(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if type(value) in (dict, list)]  # just parsed: no subclass of them


def _children(container: Any) -> Iterable[Any]:
    return container.values() if type(container) is dict else container


def _check_unicode(value: Any, name: str) -> None:
    try:
        _encode(value, indent=None)
    except UnicodeEncodeError as error:
        raise StrictJsonError(f"{name}: a string holds a lone surrogate escape; write valid Unicode") from error


def _encode(value: Any, indent: int | None) -> bytes:
    separators = (",", ":") if indent is None else (",", ": ")
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators)
    return (text + "\n").encode("utf-8")
