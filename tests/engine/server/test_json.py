"""Strict JSON: one meaning or a 400, never a 500."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.server.strictjson import MalformedJson, read_object
from tests.engine.server.client import SPEECH, request_bytes
from tests.engine.server.conftest import Running

GOOD = b'{"text": "Hi", "voice_description": "calm"'
MALFORMED = {
    "nothing": b"",
    "not_json": b"text=Hi",
    "array": b"[]",
    "string": b'"Hi"',
    "null": b"null",
    "trailing": GOOD + b"} x",
    "truncated": GOOD,
    "duplicate_key": GOOD + b', "text": "Ho"}',
    "duplicate_key_inside": GOOD + b', "sampling": {"top_k": 1, "top_k": 2}}',
    "duplicate_key_by_escape": GOOD + b', "te\\u0078t": "Ho"}',
    "nan": GOOD + b', "max_duration_seconds": NaN}',
    "infinity": GOOD + b', "max_duration_seconds": -Infinity}',
    "huge_float": GOOD + b', "max_duration_seconds": 1e999}',
    "huge_integer": GOOD + b', "seed": ' + b"9" * 5_000 + b"}",
    "lone_surrogate": b'{"text": "\\ud83d", "voice_description": "calm"}',
    "lone_surrogate_key": GOOD + b', "\\udc00": 1}',
    "deep_array": GOOD + b', "x": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    "deep_object": GOOD + b', "x": ' + b'{"a":' * 5_000 + b"1" + b"}" * 5_001,
    "not_utf8": b'{"text": "\xff\xfe", "voice_description": "calm"}',
    "utf16": '{"text": "Hi"}'.encode("utf-16"),
    "byte_order_mark": b"\xef\xbb\xbf" + GOOD + b"}",
    "control_character": b'{"text": "a\x01b", "voice_description": "calm"}',
    "comment": GOOD + b"/* */}",
}


def test_malformed_bodies_are_400(shared_server: Running) -> None:
    wire = shared_server.wire()
    for name, body in MALFORMED.items():
        found = wire.ask(request_bytes("POST", SPEECH, body))
        assert (found.status, found.document()["code"]) == (400, "malformed_json"), name


def test_large_but_readable_numbers_get_their_field_code(shared_server: Running) -> None:
    wire = shared_server.wire()
    for value in (b"1e300", b"-0.0001", b"12345678901234567890123456789012345678901234567890"):
        found = wire.ask(request_bytes("POST", SPEECH, GOOD + b', "seed": ' + value + b"}"))
        assert (found.status, found.document()["code"]) == (422, "invalid_seed"), value


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "application/json"}, 200),
        ({"Content-Type": 'Application/JSON; charset="UTF-8"'}, 200),
        ({"Content-Type": "application/json; charset=latin-1"}, 415),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "multipart/form-data; boundary=x"}, 415),
        ({}, 415),
        ({"Content-Type": "application/json", "Content-Encoding": "gzip"}, 415),
    ],
)
def test_media_type(shared_server: Running, headers: dict[str, str], status: int) -> None:
    found = shared_server.ask(request_bytes("POST", SPEECH, GOOD + b"}", headers, json_type=False))
    assert found.status == status
    if status == 415:
        assert found.document()["code"] == "unsupported_media_type"


def test_body_limit_is_the_contract_s(shared_server: Running) -> None:
    limit = 32_768 + 4_096 + 16_384
    for size, status in ((limit, 200), (limit + 1, 413)):
        body = GOOD + b" " * (size - len(GOOD) - 1) + b"}"
        found = shared_server.ask(request_bytes("POST", SPEECH, body))
        assert found.status == status
    assert found.document()["code"] == "request_too_large"


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None)
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    try:
        read_object(body)
    except MalformedJson:
        return


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), VALUES, max_size=5))
@settings(max_examples=50, deadline=None)
def test_well_formed_objects_are_read_as_they_are(document: dict[str, object]) -> None:
    assert read_object(json.dumps(document).encode()) == document
