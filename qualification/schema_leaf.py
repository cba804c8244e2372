"""A quick yes for simple values, so that validating a large bundle takes seconds.

`leaf_accepts` says True only where the full validator would accept too; False means "ask the full validator", which
alone decides and words a refusal. It knows simple types with bounds and patterns, `const` and `enum` over texts and
null, closed objects, maps and arrays of such values, alternatives of them and references to shared definitions. A schema
with any other keyword is never decided here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from qualification.schema_files import definition

Check = Callable[[Any], bool]
Schema = Mapping[str, Any]
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
    rules = {key: value for key, value in schema.items() if key not in _ANNOTATIONS}
    keys = frozenset(rules)
    for wanted, allowed, build in _FORMS:
        if wanted <= keys <= allowed:
            return build(rules)
    return None


def _reference(rules: Schema) -> Check | None:
    return _compile(definition(rules["$ref"]))


def _alternatives(rules: Schema) -> Check | None:
    checks = [_compile(schema) for schema in rules["anyOf"]]
    known = [check for check in checks if check is not None]
    return (lambda value: any(check(value) for check in known)) if len(known) == len(checks) else None


def _constant(rules: Schema) -> Check | None:
    return _choice({"enum": [rules["const"]]})


def _choice(rules: Schema) -> Check | None:
    choices = rules["enum"]
    if not all(choice is None or isinstance(choice, str) for choice in choices):
        return None
    texts = frozenset(choices)
    return lambda value: (value is None or type(value) is str) and value in texts


def _array(rules: Schema) -> Check | None:
    item, least = _compile(rules["items"]), rules.get("minItems", 0)
    if item is None or rules["type"] != "array":
        return None
    return lambda value: type(value) is list and len(value) >= least and all(item(child) for child in value)


def _map(rules: Schema) -> Check | None:
    key, item = _compile(rules["propertyNames"]), _compile(rules["additionalProperties"])
    if key is None or item is None or rules["type"] != "object":
        return None
    return lambda value: type(value) is dict and all(key(name) and item(child) for name, child in value.items())


def _closed(rules: Schema) -> Check | None:
    compiled = {name: _compile(schema) for name, schema in rules["properties"].items()}
    checks = {name: check for name, check in compiled.items() if check is not None}
    if len(checks) < len(compiled) or rules["type"] != "object" or rules["additionalProperties"] is not False:
        return None
    required = frozenset(rules["required"])

    def check(value: Any) -> bool:
        if type(value) is not dict or not (required <= value.keys() <= checks.keys()):
            return False
        return all(checks[name](item) for name, item in value.items())

    return check


def _simple(rules: Schema) -> Check | None:
    names = rules["type"] if isinstance(rules["type"], list) else [rules["type"]]
    if not all(name in _TYPES for name in names):
        return None
    types = [_TYPES[name] for name in names]
    bounds = [(*_BOUNDS[key], rules[key]) for key in _BOUNDS if key in rules]

    def check(value: Any) -> bool:
        if not any(accepts(value) for accepts in types):
            return False
        return all(type(value) not in kinds or holds(value, limit) for kinds, holds, limit in bounds)

    return check


def _form(build: Callable[[Schema], Check | None], *wanted: str, more: tuple[str, ...] = ()) -> Any:
    return frozenset(wanted), frozenset((*wanted, *more)), build


# Which keywords a schema must have, and may have at most, to be of a form.
_FORMS: Final[tuple[tuple[frozenset[str], frozenset[str], Callable[[Schema], Check | None]], ...]] = (
    _form(_reference, "$ref"),
    _form(_alternatives, "anyOf"),
    _form(_constant, "const"),
    _form(_choice, "enum"),
    _form(_array, "type", "items", more=("minItems",)),
    _form(_map, "type", "propertyNames", "additionalProperties"),
    _form(_closed, "type", "properties", "required", "additionalProperties"),
    _form(_simple, "type", more=tuple(_BOUNDS)),
)
