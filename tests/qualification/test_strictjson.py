"""Strict in, canonical out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qualification import strictjson
from qualification.errors import BundleError, StrictJsonError

REFUSED = {
    "duplicate key": (b'{"a":1,"a":2}', "'a' appears twice"),
    "duplicate key deep inside": (b'[{"b":{"a":1,"a":1}}]', "'a' appears twice"),
    "NaN": (b'{"a":NaN}', "NaN is no JSON number"),
    "infinity": (b"[Infinity]", "Infinity is no JSON number"),
    "minus infinity": (b"[-Infinity]", "-Infinity is no JSON number"),
    "infinity by overflow": (b"[1e400]", "overflows to infinity"),
    "minus infinity by overflow": (b"[-1e400]", "overflows to infinity"),
    "integer beyond 64 bits": (b"[9223372036854775808]", "does not fit 64 bits"),
    "integer of 5,000 digits": (b"[" + b"9" * 5_000 + b"]", "does not fit 64 bits"),
    "byte-order mark": (b"\xef\xbb\xbf{}", "byte-order mark"),
    "not UTF-8": (b'"\xff"', "not UTF-8 at byte 1"),
    "UTF-16": ('{"a":1}'.encode("utf-16-le"), "not JSON|not UTF-8|control"),
    "lone surrogate escape": (b'"\\ud800"', "lone surrogate"),
    "lone surrogate as a key": (b'{"\\udfff":1}', "lone surrogate"),
    "33 levels": (b"[" * 33 + b"]" * 33, "deeper than 32"),
    "33 levels of objects": (b'{"a":' * 32 + b"{}" + b"}" * 32, "deeper than 32"),
    "33 levels beside a flat one": (b"[1," + b"[" * 32 + b"]" * 32 + b"]", "deeper than 32"),
    "a value inside the 32nd level": (b"[" * 32 + b"1" + b"]" * 32, "deeper than 32"),
    "integer beyond 64 bits, negative": (b"[-9223372036854775808]", "does not fit 64 bits"),
    "100,000 levels": (b"[" * 100_000 + b"]" * 100_000, "deeper than 32"),
    "two values": (b"1 2", "not JSON from line 1, column 3"),
    "nothing": (b"", "not JSON"),
    "trailing comma": (b"[1,]", "not JSON"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name: str) -> None:
    data, message = REFUSED[name]
    with pytest.raises(StrictJsonError, match=message) as caught:
        strictjson.loads(data, "document.json")
    assert str(caught.value).startswith("document.json: ")


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"[" * 32 + b"]" * 32, None),
        (b"9223372036854775807", 2**63 - 1),
        (b"-9223372036854775807", 1 - 2**63),
        (b"1e308", 1e308),
        (b'"\\ud83d\\ude00"', "\N{GRINNING FACE}"),
        (b' {"a": [1, 2.5, null, true]} ', {"a": [1, 2.5, None, True]}),
    ],
)
def test_accepts_what_lies_just_inside(data: bytes, value: object) -> None:
    found = strictjson.loads(data, "x")
    assert value is None or found == value


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",))),
    lambda children: st.lists(children, max_size=4)
    | st.dictionaries(st.text(st.characters(exclude_categories=("Cs",))), children, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(_JSON)
def test_canonical_form_reads_back_and_is_a_fixed_point(value: object) -> None:
    for write in (strictjson.dumps, strictjson.dumps_line):
        data = write(value)
        again = strictjson.loads(data, "x")
        assert again == value
        assert write(again) == data
        assert data.endswith(b"\n")


def test_canonical_form() -> None:
    assert strictjson.dumps({"b": 1, "a": ["ü", 1.0]}) == '{\n  "a": [\n    "ü",\n    1.0\n  ],\n  "b": 1\n}\n'.encode()
    assert strictjson.dumps_line({"b": 1, "a": 2}) == b'{"a":2,"b":1}\n'
    with pytest.raises(ValueError, match="JSON compliant"):
        strictjson.dumps(float("nan"))


def test_lines() -> None:
    assert strictjson.loads_lines(b'1\n{"a":2}\n', "x") == (1, {"a": 2})
    assert strictjson.loads_lines(b"", "x") == ()
    with pytest.raises(StrictJsonError, match="looks truncated"):
        strictjson.loads_lines(b"1\n2", "x")
    with pytest.raises(StrictJsonError, match=r"^x:2: "):
        strictjson.loads_lines(b"1\n\n3\n", "x")


def test_a_line_separator_inside_a_string_is_no_line_end() -> None:
    data = strictjson.dumps_line("a\N{LINE SEPARATOR}b\rc")
    assert strictjson.loads_lines(data, "x") == ("a\N{LINE SEPARATOR}b\rc",)


def test_written_once(tmp_path: Path) -> None:
    place = tmp_path / "new" / "a.json"
    strictjson.write(place, {"a": 1})
    with pytest.raises(BundleError, match="exists already"):
        strictjson.write(place, {"a": 2})
    assert json.loads(place.read_bytes()) == {"a": 1}
    strictjson.write_lines(tmp_path / "b.jsonl", [1, 2])
    assert (tmp_path / "b.jsonl").read_bytes() == b"1\n2\n"
    assert strictjson.load(place) == {"a": 1}
