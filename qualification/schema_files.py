"""The schemas as data: `<name>.schema.json`, found, parsed and named. Validation is the business of `schema`."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from qualification import strictjson
from qualification.errors import SchemaError
from qualification.paths import schema_directory

SUFFIX: Final = ".schema.json"
PREFIX: Final = "urn:assay:schema:"


def urn(name: str) -> str:
    """The `$id` of a schema, which is also the `schema` field of its documents."""
    return f"{PREFIX}{name}:v1"


def names() -> tuple[str, ...]:
    """Names of all schemas, sorted."""
    return tuple(sorted(path.name.removesuffix(SUFFIX) for path in schema_directory().glob(f"*{SUFFIX}")))


@cache
def document_schema(name: str) -> Any:
    """The schema itself.

    Raises:
        SchemaError: where no such schema ships with the package, or its `$id` is another's.
    """
    path = schema_directory() / f"{name}{SUFFIX}"
    if name not in names():
        raise SchemaError(f"no schema {name!r} in {path.parent.name}/; known: {', '.join(names())}")
    schema = strictjson.load(path)
    if schema.get("$id") != urn(name):
        raise SchemaError(f"{path.name}: $id is {schema.get('$id')!r}, expected {urn(name)!r}")
    return schema


def definition(reference: str) -> Any | None:
    """What `urn:assay:schema:<name>:v1#/$defs/<word>` refers to, or None for a reference of another form."""
    document, _, place = reference.partition("#/$defs/")
    name = document.removeprefix(PREFIX).removesuffix(":v1")
    if document != urn(name) or name not in names() or "/" in place:
        return None
    return document_schema(name).get("$defs", {}).get(place)
