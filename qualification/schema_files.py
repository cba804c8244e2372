"""The schemas as data: `<name>.schema.json`, found, parsed and named. Validation is the business of `schema`."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from qualification import strictjson
from qualification.errors import SchemaError
from qualification.paths import schema_directory

SUFFIX: Final = ".schema.json"
PREFIX: Final = "urn:assay:schema:"
_VERSIONS: Final = {
    "interruption": 2, "manifest": 2, "phases": 2, "policy": 2, "run": 2, "statement": 2, "summary": 2, "telemetry": 2,
    "verification": 2,
}  # every other schema is at its first  # fmt: skip
_URN: Final = re.compile(rf"{PREFIX}([a-z-]+):v([0-9]+)")


def urn(name: str) -> str:
    """The `$id` of a schema, which is also the `schema` field of its documents."""
    return f"{PREFIX}{name}:v{_VERSIONS.get(name, 1)}"


def split_urn(text: str) -> tuple[str, int] | None:
    """(name, version) of a schema's `$id`; None for any other text."""
    match = _URN.fullmatch(text)
    return (match[1], int(match[2])) if match else None


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
    """What `urn:assay:schema:<name>:v<n>#/$defs/<word>` refers to, or None for a reference of another form."""
    document, _, place = reference.partition("#/$defs/")
    named = split_urn(document)
    if named is None or document != urn(named[0]) or named[0] not in names() or "/" in place:
        return None
    return document_schema(named[0]).get("$defs", {}).get(place)
