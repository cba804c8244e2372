"""One JSON object of a checkpoint's configuration: a missing, mistyped or impossible value is named and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar, cast

from engine.errors import ModelError

T = TypeVar("T")


class Section:
    """A JSON object that remembers where it came from and refuses missing or mistyped keys."""

    def __init__(self, values: object, where: str) -> None:
        if not isinstance(values, dict):
            raise ModelError(f"{where} must be a JSON object")
        self._values = cast("dict[str, Any]", values)
        self._where = where

    def count(self, key: str, *, at_least: int = 1) -> int:
        """How many of something there are, or how wide it is."""
        value = self._typed(key, int)
        if value < at_least:
            raise ModelError(f"{self._where}: {key} must be at least {at_least}, found {value}")
        return value

    def token(self, key: str, *, start: int = 0, stop: int) -> int:
        """An id within a vocabulary, start <= id < stop."""
        value = self._typed(key, int)
        self._require_within(key, value, start, stop)
        return value

    def number(self, key: str) -> float:
        value = self._get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ModelError(f"{self._where}: {key} must be a number, found {value!r}")
        return float(value)

    def section(self, key: str) -> Section:
        return Section(self._get(key), f"{self._where}: {key}")

    def factors(self, key: str) -> tuple[int, ...]:
        value = self._get(key)
        if not isinstance(value, list) or not all(type(item) is int and item > 0 for item in value):
            raise ModelError(f"{self._where}: {key} must be a list of integers above 0, found {value!r}")
        return tuple(value)

    def tokens(self, key: str, *, stop: int) -> dict[str, int]:
        """Ids by name, each within a vocabulary of `stop` ids."""
        value = self._get(key)
        if not isinstance(value, dict) or not all(type(item) is int for item in value.values()):
            raise ModelError(f"{self._where}: {key} must map names to integers")
        for name, token in value.items():
            self._require_within(f"{key}: {name}", token, 0, stop)
        return dict(value)

    def expect(self, key: str, expected: object, mend: str) -> None:
        found = self._get(key)
        if found != expected:
            raise ModelError(f"{self._where}: {key} is {found!r}, this engine needs {expected!r}; {mend}")

    def require(self, condition: bool, rule: str) -> None:
        """Refuse values that do not go together."""
        if not condition:
            raise ModelError(f"{self._where}: {rule}")

    def _require_within(self, name: str, value: int, start: int, stop: int) -> None:
        if not start <= value < stop:
            raise ModelError(f"{self._where}: {name} is {value}, not within {start} and {stop - 1}")

    def _typed(self, key: str, kind: type[T]) -> T:
        value = self._get(key)
        if type(value) is not kind:
            raise ModelError(f"{self._where}: {key} must be of type {kind.__name__}, found {value!r}")
        return value

    def _get(self, key: str) -> Any:
        if key not in self._values:
            raise ModelError(f"{self._where}: key {key!r} is missing; the engine does not guess model shapes")
        return self._values[key]


def read_section(path: Path) -> Section:
    """The JSON object in a file.

    Raises:
        ModelError: missing, unreadable or not an object.
    """
    try:
        values = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise ModelError(f"{path} is missing; give a complete model directory with --model") from error
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read as JSON ({error}); fetch the file again") from error
    return Section(values, path.name)
