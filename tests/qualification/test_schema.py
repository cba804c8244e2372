"""One validator: formats, finite numbers, strict integers, closed objects; and the quick yes agrees with it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.validators import extend

from qualification import schema, strictjson
from qualification.errors import SchemaError
from qualification.evidence_view import DOCUMENTS, EvidenceView
from qualification.schema_leaf import leaf_accepts
from qualification.tamper.good import Good


@pytest.mark.parametrize("name", schema.names())
def test_every_schema_is_a_schema_closed_and_described(name: str) -> None:
    document = schema.document_schema(name)
    Draft202012Validator.check_schema(document)
    assert document["$id"] == schema.urn(name)
    open_objects = [place for place, part in _parts(document, "$") if _is_open(part)]
    assert open_objects == []
    bare = [place for place, part in _parts(document, "$") for key in _undescribed(part, place) if key]
    assert bare == []


def _parts(part: Any, place: str) -> Any:
    if isinstance(part, dict):
        yield place, part
        for key, child in part.items():
            yield from _parts(child, f"{place}.{key}")
    elif isinstance(part, list):
        for number, child in enumerate(part):
            yield from _parts(child, f"{place}[{number}]")


def _is_open(part: dict[str, Any]) -> bool:
    """An object with named properties that lets others in, conditions inside if/then/else excepted."""
    declares = "properties" in part and "type" in part
    return declares and part.get("additionalProperties") is not False


def _undescribed(part: dict[str, Any], place: str) -> list[str]:
    if "type" not in part or not isinstance(part.get("properties"), dict):
        return []
    return [f"{place}.{key}" for key, child in part["properties"].items() if not {"description", "$ref"} & child.keys()]


def _gate_document() -> dict[str, Any]:
    return {
        "schema": schema.urn("gates"),
        "run_id": "run-00000001",
        "commit": None,
        "image": None,
        "policy_sha256": "0" * 64,
        "results": [
            {
                "id": "a.b", "title": "A", "claim": "C", "outcome": "failed", "n": 3, "detail": "D", "observed": 1.5,
                "limit": 1, "bound": None, "confidence": None, "unit": None, "comparison": None, "reason_code": None,
                "needed": None, "owner": None, "derivations": [],
            }
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("observed", float("nan")),
        ("observed", float("inf")),
        ("observed", True),
        ("observed", "1"),
        ("n", 3.0),
        ("n", True),
        ("n", -1),
        ("outcome", "skipped"),
        ("comparison", "<"),
        ("confidence", 1),
        ("id", "A.b"),
        ("note", "an unknown field"),
    ],
)
def test_refuses_a_value(field: str, value: object) -> None:
    document = _gate_document()
    schema.validate("gates", document, "gates.json")
    document["results"][0][field] = value
    with pytest.raises(SchemaError, match=r"^gates\.json: \$\.results\[0\]"):
        schema.validate("gates", document, "gates.json")


@pytest.mark.parametrize(
    "moment",
    ["2026-01-01T00:00:00+00:00", "2026-01-01 00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-01T25:00:00Z", "now", "Z"],
)
def test_formats_are_checked(moment: str, good_bundle: Good) -> None:
    run = copy.deepcopy(EvidenceView(good_bundle.root).run)
    run["started_utc"] = moment
    with pytest.raises(SchemaError, match="started_utc"):
        schema.validate("run", run, "run.json")


@pytest.mark.parametrize("day", ["2026-13-01", "2026-1-1", "20260101", "2026-W01-1"])
def test_days_are_checked(day: str, good_bundle: Good) -> None:
    policy = copy.deepcopy(EvidenceView(good_bundle.root).document("policy.json"))
    policy["waivers"] = [{"gate": "provenance", "subject": None, "who": "W", "why": "Because " * 4, "until": day}]
    with pytest.raises(SchemaError, match="until"):
        schema.validate("policy", policy, "policy.json")


def test_another_version_is_refused_by_name(good_bundle: Good) -> None:
    run = {**EvidenceView(good_bundle.root).run, "schema": "urn:assay:schema:run:v1"}
    del run["gates_selected"]
    with pytest.raises(
        SchemaError, match=r"run\.json: is of schema urn:assay:schema:run:v1 and this harness reads .*:v2"
    ):
        schema.validate("run", run, "run.json")


def test_an_unknown_schema_is_refused() -> None:
    with pytest.raises(SchemaError, match="no schema 'nothing'"):
        schema.validate("nothing", {}, "x")
    with pytest.raises(SchemaError, match="names no schema"):
        schema.name_of({"schema": "https://example.org/run"}, "x")
    assert schema.name_of({"schema": schema.urn("run")}, "x") == "run"


def test_every_document_of_the_good_bundle_loads(good_bundle: Good) -> None:
    for path, name in DOCUMENTS.items():
        assert schema.load(name, good_bundle.root / path)["schema"] == schema.urn(name)


# The quick yes must never say yes where the full validator says no.

_PLAIN = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    ),
)
_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(-3, 3), st.text("a0-Z/", max_size=4), st.just({})
)  # fmt: skip
_LEAVES = st.one_of(
    st.just({}),
    st.fixed_dictionaries({}, optional={"minimum": st.integers(-2, 2), "minItems": st.integers(0, 2)}),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number", "string", "boolean", "null", ["integer", "null"]])},
        optional={
            "minimum": st.integers(-2, 2), "maximum": st.integers(-2, 2), "minLength": st.integers(0, 2),
            "maxLength": st.integers(0, 3), "pattern": st.sampled_from(["^a+$", "0", "^[a-z]"]),
            "description": st.just("d"), "multipleOf": st.just(2), "minItems": st.integers(0, 2),
        },
    ),
    st.fixed_dictionaries({"enum": st.lists(st.none() | st.text("a0", max_size=1), min_size=1, max_size=3)}),
    st.fixed_dictionaries({"const": st.sampled_from(["a", None, 1, True])}),
)  # fmt: skip


def _closed(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.dictionaries(st.sampled_from("ab"), children, max_size=2).map(
        lambda properties: {
            "type": ["object", "null"] if len(properties) > 1 else "object",
            "properties": properties,
            "required": sorted(properties)[:1],
            "additionalProperties": False,
        }
    )


def _conditional(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    asked = st.sampled_from([{"const": "a"}, {"const": "0"}, {"type": "integer"}, {"const": 1}])
    parts = st.dictionaries(st.sampled_from("ab"), children, max_size=1).map(lambda some: {"properties": some})
    return st.builds(
        lambda base, name, part, then, other: {**base, "if": {"properties": {name: part}}, "then": then, "else": other},
        _closed(children), st.sampled_from("ab"), asked, parts, parts,
    )  # fmt: skip


_SCHEMAS = st.recursive(
    _LEAVES,
    lambda children: st.one_of(
        _closed(children),
        _conditional(children),
        st.fixed_dictionaries({"type": st.just("array"), "items": children}, optional={"minItems": st.just(1)}),
        st.fixed_dictionaries({"anyOf": st.lists(children, min_size=1, max_size=2)}),
        st.builds(
            lambda names, item: {"type": "object", "propertyNames": names, "additionalProperties": item},
            st.just({"enum": ["a", "b"]}), children,
        ),
    ),
    max_leaves=4,
)  # fmt: skip
_INSTANCES = st.recursive(
    _VALUES,
    lambda children: st.lists(children, max_size=2) | st.dictionaries(st.sampled_from("abc"), children, max_size=2),
    max_leaves=4,
)


@settings(max_examples=1_000)
@given(_SCHEMAS, _INSTANCES)
def test_the_quick_yes_agrees_with_the_plain_validator(part: dict[str, Any], value: object) -> None:
    if leaf_accepts(part, value):
        assert _PLAIN(part, format_checker=FormatChecker()).is_valid(value)


def test_the_quick_yes_is_not_idle(good_bundle: Good) -> None:
    line = (good_bundle.root / "samples/b1.jsonl").read_bytes().splitlines(keepends=True)[0]
    record = strictjson.loads(line, "x")
    properties = schema.document_schema("request-record")["properties"]
    decided = [name for name in properties if leaf_accepts(properties[name], record[name])]
    assert decided == list(properties)
    assert leaf_accepts(schema.document_schema("request-record"), record)
