"""One schema a document, one validator for all of them.

Two holes of the ordinary validator are closed here: `format` is checked (it is ignored by default), and a number must
be finite (NaN passes every bound, because it compares false). An integer is an integer: `1.0` and `true` are none.
`strictjson` refuses NaN in files already; this also holds for documents that never were a file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.validators import extend
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from qualification import strictjson
from qualification.errors import SchemaError
from qualification.schema_files import document_schema, names, split_urn, urn
from qualification.schema_leaf import leaf_accepts

__all__ = ["document_schema", "load", "name_of", "names", "urn", "validate", "validator_for"]

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")


def name_of(document: Any, source: str) -> str:
    """The schema that a document names in its own `schema` field.

    Raises:
        SchemaError: where it names none.
    """
    named = split_urn(str(document.get("schema"))) if isinstance(document, Mapping) else None
    if named is None:
        raise SchemaError(f"{source}: its field `schema` names no schema of this project; write {urn('<name>')}")
    return named[0]


def validate(name: str, document: Any, source: str) -> None:
    """Check `document` against the schema `name`; `source` (usually a file) opens the error message.

    Raises:
        SchemaError: naming the place inside the document and the rule that it breaks.
    """
    validator = validator_for(name)
    if leaf_accepts(document_schema(name), document) or validator.is_valid(document):
        return
    _check_version(name, document, source)
    error = best_match(validator.iter_errors(document))
    assert error is not None  # our own contradiction: invalid without an error
    raise SchemaError(f"{source}: {_place(error)}: {_reason(error)}")


def load(name: str, path: Path) -> Any:
    """Parse the file at `path` strictly and check it against the schema `name`.

    Raises:
        StrictJsonError, SchemaError: naming the file; OSError where it cannot be read.
    """
    document = strictjson.load(path)
    validate(name, document, path.name)
    return document


@cache
def validator_for(name: str) -> Draft202012Validator:
    """The compiled validator of a schema, with formats and finite numbers checked."""
    validator: Draft202012Validator = _Strict(document_schema(name), registry=_registry(), format_checker=_formats())
    return validator


@cache
def _registry() -> Registry[Any]:
    """All schemas, crawled once; a reference to anything else fails, because nothing is ever fetched."""
    resources = [(urn(name), DRAFT202012.create_resource(document_schema(name))) for name in names()]
    return Registry().with_resources(resources).crawl()


def _is_integer(_: Any, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(_: Any, value: object) -> bool:
    return _is_integer(_, value) or (isinstance(value, float) and math.isfinite(value))


def _properties(
    validator: Any, properties: Mapping[str, Any], instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    """The keyword `properties`, with simple values decided by `leaf_accepts` first: bundles hold millions of them."""
    if not isinstance(instance, dict):
        return
    for name, subschema in properties.items():
        if name in instance and not leaf_accepts(subschema, instance[name]):
            yield from validator.descend(instance[name], subschema, path=name, schema_path=name)


def _items(validator: Any, items: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[ValidationError]:
    """The keyword `items`, with simple values and flat objects decided by `leaf_accepts` first."""
    if not isinstance(instance, list) or "prefixItems" in schema:
        yield from Draft202012Validator.VALIDATORS["items"](validator, items, instance, schema)
        return
    for index, item in enumerate(instance):
        if not leaf_accepts(items, item):
            yield from validator.descend(item, items, path=index)


_Strict = extend(  # type: ignore[no-untyped-call]  # the stub package leaves `extend` bare
    Draft202012Validator,
    validators={"properties": _properties, "items": _items},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer).redefine("number", _is_number),
)


@cache
def _formats() -> FormatChecker:
    checker = FormatChecker(formats=())
    checks: dict[str, Callable[[str], object]] = {"uuid": UUID, "date": _day, "date-time": _moment}
    for name, check in checks.items():
        checker.checks(name, raises=ValueError)(_for_strings(check))
    return checker


def _for_strings(check: Callable[[str], object]) -> Callable[[object], bool]:
    def conforms(value: object) -> bool:
        return not isinstance(value, str) or check(value) is not None

    return conforms


def _day(text: str) -> date:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        raise ValueError(text)
    return date.fromisoformat(text)


def _moment(text: str) -> datetime:
    if not _TIME.fullmatch(text):
        raise ValueError(text)
    return datetime.fromisoformat(text)


def _check_version(name: str, document: Any, source: str) -> None:
    """A document of another version breaks many rules; only the first of them matters."""
    told = document.get("schema") if isinstance(document, Mapping) else None
    named = split_urn(str(told))
    if named is not None and named[0] == name and told != urn(name):
        raise SchemaError(
            f"{source}: is of schema {told} and this harness reads {urn(name)}; use the harness that wrote it "
            "(run.json names its version)"
        )


def _place(error: ValidationError) -> str:
    steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path]
    return "$" + "".join(steps)


def _reason(error: ValidationError) -> str:
    return error.message if len(error.message) <= 400 else error.message[:397] + "..."
