"""A quick yes for the simplest values, so that validating a large bundle takes seconds.

`leaf_accepts` says True only where the full validator would accept too; False means "ask the full validator", which alone
decides and words the refusal. It knows `type`, `minimum`, `maximum`, `minLength`, `maxLength`, `pattern`, and `const` and
`enum` over texts and null, and closed objects of such values; a schema with any other keyword is never decided here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

Check = Callable[[Any], bool]
_ANNOTATIONS: Final = frozenset({"description", "title"})
_TYPES: Final[Mapping[str, Check]] = {
    "integer": lambda value: type(value) is int,
    "number": lambda value: type(value) is int or (type(value) is float and math.isfinite(value)),
    "string": lambda value: type(value) is str,
    "boolean": lambda value: type(value) is bool,
    "null": lambda value: value is None,
}
_BOUNDS: Final[Mapping[str, tuple[tuple[type, ...], Callable[[Any, Any], bool]]]] = {
    "minimum": ((int, float), lambda value, limit: value >= limit),
    "maximum": ((int, float), lambda value, limit: value <= limit),
    "minLength": ((str,), lambda value, limit: len(value) >= limit),
    "maxLength": ((str,), lambda value, limit: len(value) <= limit),
    "pattern": ((str,), lambda value, pattern: re.search(pattern, value) is not None),
}
_CLOSED: Final = frozenset({"type", "properties", "required", "additionalProperties"})
_compiled: dict[int, tuple[Any, Check | None]] = {}


def leaf_accepts(schema: Any, value: Any) -> bool:
    """Whether `schema` is simple enough to be decided here and accepts `value`."""
    known = _compiled.get(id(schema))
    if known is None or known[0] is not schema:
        known = _compiled[id(schema)] = (schema, _compile(schema))  # holding the schema keeps its id its own
    check = known[1]
    return check is not None and check(value)


def _compile(schema: Any) -> Check | None:
    if not isinstance(schema, Mapping):
        return None
    keywords = {key: value for key, value in schema.items() if key not in _ANNOTATIONS}
    if keywords.keys() <= {"const"} or keywords.keys() <= {"enum"}:
        return _one_of(keywords.get("enum", [keywords.get("const")])) if keywords else None
    if keywords.keys() == _CLOSED and keywords["type"] == "object" and keywords["additionalProperties"] is False:
        return _closed(keywords["properties"], frozenset(keywords["required"]))
    if "type" not in keywords or not keywords.keys() <= {"type", *_BOUNDS}:
        return None
    names = keywords["type"] if isinstance(keywords["type"], list) else [keywords["type"]]
    if not all(name in _TYPES for name in names):
        return None
    return _typed(
        [_TYPES[name] for name in names], [(*_BOUNDS[key], keywords[key]) for key in _BOUNDS if key in keywords]
    )


def _closed(properties: Mapping[str, Any], required: frozenset[str]) -> Check | None:
    compiled = {name: _compile(schema) for name, schema in properties.items()}
    checks = {name: check for name, check in compiled.items() if check is not None}
    if len(checks) < len(compiled):
        return None

    def check(value: Any) -> bool:
        if type(value) is not dict or not (required <= value.keys() <= checks.keys()):
            return False
        return all(checks[name](item) for name, item in value.items())

    return check


def _one_of(choices: list[Any]) -> Check | None:
    if not all(choice is None or isinstance(choice, str) for choice in choices):
        return None
    texts = frozenset(choices)
    return lambda value: (value is None or type(value) is str) and value in texts


def _typed(types: list[Check], bounds: list[tuple[tuple[type, ...], Callable[[Any, Any], bool], Any]]) -> Check:
    def check(value: Any) -> bool:
        if not any(accepts(value) for accepts in types):
            return False
        return all(type(value) not in kinds or holds(value, limit) for kinds, holds, limit in bounds)

    return check
