"""Draws `docs/schemas.md` from the schemas: one table a document, one row a field.

`python -m qualification.schema_pages > docs/schemas.md`. Nothing on the page is written by hand, and a test compares.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from qualification.schema_files import document_schema, names, split_urn

_HEAD: Final = """# Schemas

Every document of a bundle, field by field. This page is drawn from `schemas/*.schema.json` by
`python -m qualification.schema_pages`; do not edit it. Objects are closed: a field that is not listed is refused. Every
listed field must be there unless it says optional. Examples lie in `schemas/examples/`.
"""
_BOUNDS: Final = (
    ("minimum", ">= {}"),
    ("exclusiveMinimum", "> {}"),
    ("maximum", "<= {}"),
    ("exclusiveMaximum", "< {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minItems", "at least {} items"),
    ("maxItems", "at most {} items"),
    ("pattern", "matches `{}`"),
    ("format", "format {}"),
)


def page() -> str:
    """The whole page, newline-ended."""
    return "\n".join([_HEAD, *(line for name in names() for line in _section(name))]).rstrip() + "\n"


def _section(name: str) -> Iterator[str]:
    schema = document_schema(name)
    yield f"## {schema['title']}"
    yield ""
    yield f"`{schema['$id']}`: {schema['description']}"
    yield ""
    if "properties" in schema:
        yield from _table(_rows(schema, ""))
    for word, part in schema.get("$defs", {}).items():
        yield f"### {name}: {word}"
        yield ""
        yield part.get("description", "")
        yield ""
        yield from _table([_row("(value)", part, False), *_rows(part, "")])


def _table(rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    yield "| field | type and rule | meaning |"
    yield "|---|---|---|"
    for cells in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
    yield ""


def _rows(schema: Mapping[str, Any], prefix: str) -> list[tuple[str, str, str]]:
    """Rows of an object's fields and, indented by their path, of the objects inside them."""
    rows = []
    for name, part in schema.get("properties", {}).items():
        path = f"{prefix}{name}"
        rows.append(_row(path, part, name not in schema.get("required", ())))
        inner, suffix = part, ""
        while "items" in inner:
            inner, suffix = inner["items"], f"{suffix}[]"
        for child in (inner, *inner.get("anyOf", ()), *_values(inner)):
            rows += _rows(child, f"{path}{suffix}.")
    return rows


def _values(schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    extra = schema.get("additionalProperties")
    return (extra,) if isinstance(extra, Mapping) else ()


def _row(path: str, part: Mapping[str, Any], optional: bool) -> tuple[str, str, str]:
    rule = _rule(part) + (", optional" if optional else "")
    return f"`{path}`", rule, part.get("description", "")


def _rule(part: Mapping[str, Any]) -> str:
    words = [_kind(part)]
    words += [form.format(part[key]) for key, form in _BOUNDS if key in part]
    if part.get("uniqueItems"):
        words.append("no two alike")
    return ", ".join(word for word in words if word)


def _kind(part: Mapping[str, Any]) -> str:
    if "$ref" in part:
        return _reference(part["$ref"])
    if "const" in part:
        return f"`{json.dumps(part['const'], ensure_ascii=False)}`"
    if "enum" in part:
        return " or ".join(f"`{json.dumps(value, ensure_ascii=False)}`" for value in part["enum"])
    if "anyOf" in part:
        return " or ".join(_kind(choice) for choice in part["anyOf"])
    kinds = part.get("type", "")
    text = " or ".join(kinds) if isinstance(kinds, list) else str(kinds)
    return f"{text} of {_kind(part['items']) or 'values'}" if "items" in part else text


def _reference(reference: str) -> str:
    word = reference.rsplit("/", 1)[-1]
    named = split_urn(reference.partition("#")[0])
    document = named[0] if named else ""
    if document and "#" not in reference:  # a whole document, whose section is named by its title
        title = document_schema(document)["title"]
        return f"[{title}](#{title.lower().replace(' ', '-')})"
    anchor = f"#{document}-{word}" if document else ""
    return f"[{word}]({anchor.lower()})" if anchor else word


if __name__ == "__main__":
    sys.stdout.write(page())
