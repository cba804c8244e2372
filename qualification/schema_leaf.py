"""A quick yes for simple values, so that validating a large bundle takes seconds.

`leaf_accepts` says True only where the full validator would accept too; False means "ask the full validator", which
alone decides and words a refusal. It knows simple types with bounds and patterns, `const` and `enum` over texts and
null, closed objects (with one condition at most), maps and arrays of such values, alternatives of them and references
to shared definitions. A schema with any other keyword is never decided here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from qualification.schema_files import definition

Check = Callable[[Any], bool]
Schema = Mapping[str, Any]
_ANNOTATIONS: Final = frozenset({"description", "title", "$schema", "$id"})
_TYPES: Final[Mapping[str, frozenset[type]]] = {
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "string": frozenset({str}),
    "boolean": frozenset({bool}),
    "null": frozenset({type(None)}),
}
_BOUNDS: Final[Mapping[str, tuple[tuple[type, ...], Callable[[Any, Any], bool]]]] = {
    "minimum": ((int, float), lambda value, limit: value >= limit),
    "maximum": ((int, float), lambda value, limit: value <= limit),
    "minLength": ((str,), lambda value, limit: len(value) >= limit),
    "maxLength": ((str,), lambda value, limit: len(value) <= limit),
    "minItems": ((list,), lambda value, limit: len(value) >= limit),
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
    if not all(choice is None or type(choice) in (str, int) for choice in choices):
        return None
    known = frozenset(choices)
    return lambda value: (value is None or type(value) in (str, int)) and value in known


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
    nullable: bool = rules["type"] == ["object", "null"]
    if len(checks) < len(compiled) or rules["additionalProperties"] is not False:
        return None
    if rules["type"] != "object" and not nullable:
        return None
    required = frozenset(rules["required"])

    def check(value: Any) -> bool:
        if value is None:
            return nullable
        if type(value) is not dict or not (required <= value.keys() <= checks.keys()):
            return False
        for name, item in value.items():  # noqa: SIM110  # as in _simple
            if not checks[name](item):
                return False
        return True

    return check


def _partial(rules: Schema) -> Check | None:
    """`properties` alone: those that are there must fit."""
    compiled = {name: _compile(schema) for name, schema in rules["properties"].items()}
    checks = {name: check for name, check in compiled.items() if check is not None}
    if len(checks) < len(compiled):
        return None
    return lambda value: (
        type(value) is dict and all(check(value[name]) for name, check in checks.items() if name in value)
    )


def _conditional(rules: Schema) -> Check | None:
    """A closed object with one `if`. The condition is decided by the full rules of `_partial`, so that a quick "no" to
    it is a real one: only simple constants may be asked for."""
    base = _compile({key: rules[key] for key in rules.keys() - {"if", "then", "else"}})
    condition, then, otherwise = (_compile(rules[key]) for key in ("if", "then", "else"))
    if base is None or condition is None or then is None or otherwise is None or not _asks_for_texts(rules["if"]):
        return None
    return lambda value: base(value) and (then if condition(value) else otherwise)(value)


def _asks_for_texts(condition: Schema) -> bool:
    asked = condition.get("properties", {}).values()
    return condition.keys() == {"properties"} and all(
        part.keys() == {"const"} and isinstance(part["const"], str) for part in asked
    )


def _simple(rules: Schema) -> Check | None:
    told = rules.get("type", list(_TYPES))
    names = told if isinstance(told, list) else [told]
    if not all(name in _TYPES for name in names):
        return None
    kinds = frozenset().union(*(_TYPES[name] for name in names)) if "type" in rules else None
    bounds = [(*_BOUNDS[key], rules[key]) for key in _BOUNDS if key in rules]

    def check(value: Any) -> bool:
        kind = type(value)
        if kinds is not None and (kind not in kinds or (kind is float and not math.isfinite(value))):
            return False
        for wanted, holds, limit in bounds:  # noqa: SIM110  # twice as fast as a generator, for every value of a bundle
            if kind in wanted and not holds(value, limit):
                return False
        return True

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
    _form(_conditional, "type", "properties", "required", "additionalProperties", "if", "then", "else"),
    _form(_partial, "properties"),
    _form(_simple, more=("type", *_BOUNDS)),
)
