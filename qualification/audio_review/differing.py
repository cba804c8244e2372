"""Where two readings of the same figures differ: everything exactly, except numbers with a fraction, within a tolerance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

SAMPLES: Final = 1e-6  # numpy on another machine: other instructions, the same arithmetic
MODELS: Final = 5e-3  # onnxruntime on another processor takes sums in another order


def differences(told: Any, found: Any, tolerance: float, place: str = "") -> Iterator[str]:
    """`place: told, found` for each value that is not the same."""
    if isinstance(told, Mapping) and isinstance(found, Mapping):
        for key in sorted({*told, *found}):
            yield from differences(told.get(key), found.get(key), tolerance, f"{place}.{key}" if place else str(key))
    elif _is_list(told) and _is_list(found) and len(told) == len(found):
        for index, (one, other) in enumerate(zip(told, found, strict=True)):
            yield from differences(one, other, tolerance, f"{place}[{index}]")
    elif not _same(told, found, tolerance):
        yield f"{place}: {_short(told)} was told, {_short(found)} is found"


def _same(told: Any, found: Any, tolerance: float) -> bool:
    if isinstance(told, float) or isinstance(found, float):
        numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (told, found))
        return numbers and abs(told - found) <= tolerance
    return type(told) is type(found) and bool(told == found)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
