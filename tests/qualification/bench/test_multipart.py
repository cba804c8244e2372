"""The multipart reader: good bodies in any cut, and every malformation by name."""

from __future__ import annotations

import pytest

from qualification.bench.multipart import MultipartReader, Part, StreamViolation, boundary_of

BODY = (
    b"--b1\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    b"\r\n--b1\r\nContent-Type: audio/pcm\r\nContent-Length: 6\r\nX-Final: true\r\n\r\n\r\n--b1"
    b"\r\n--b1\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n"
    b"\r\n--b1--\r\n"
)


def read(body: bytes, size: int = 1 << 20) -> list[Part]:
    reader = MultipartReader(b"b1")
    parts: list[Part] = []
    for at, offset in enumerate(range(0, len(body), size)):
        parts += reader.feed(body[offset : offset + size], at)
    reader.finish()
    return parts


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1 << 20])
def test_any_cut_gives_the_same_parts(size: int) -> None:
    parts = read(BODY, size)
    assert [part.body for part in parts] == [b"{}", b"\r\n--b1", b""]
    assert parts[1].headers == {"content-type": "audio/pcm", "content-length": "6", "x-final": "true"}


def test_stamps_are_those_of_the_first_and_last_body_byte() -> None:
    parts = read(BODY, 1)
    start = BODY.index(b"{}")
    assert (parts[0].first_byte_ns, parts[0].last_byte_ns) == (start, start + 1)


@pytest.mark.parametrize("tail", [b"\r\n--b1--", b"\r\n--b1--\r\n"])
def test_both_closings_and_an_empty_preamble_are_accepted(tail: bytes) -> None:
    body = b"\r\n" + BODY.removesuffix(b"\r\n--b1--\r\n") + tail
    assert len(read(body, 5)) == 3


BAD = {
    "preamble": ("bad_boundary", b"hello" + BODY),
    "wrong-first-boundary": ("bad_boundary", BODY.replace(b"--b1", b"--b2", 1)),
    "wrong-later-boundary": ("bad_boundary", BODY.replace(b"{}\r\n--b1", b"{}\r\n--b2")),
    "bare-line-feeds": ("bad_boundary", BODY.replace(b"\r\n", b"\n")),
    "bare-line-feed-in-headers": (
        "bad_part_header",
        BODY.replace(b"json\r\nContent-Length: 2", b"json\nContent-Length: 2"),
    ),
    "no-length": ("bad_part_length", BODY.replace(b"Content-Length: 2\r\n", b"")),
    "signed-length": ("bad_part_length", BODY.replace(b"Length: 2", b"Length: +2")),
    "length-too-short": ("bad_boundary", BODY.replace(b"Length: 2", b"Length: 1")),
    "length-too-long": ("bad_boundary", BODY.replace(b"Length: 2", b"Length: 3")),
    "huge-length": ("bad_part_length", BODY.replace(b"Length: 2", b"Length: 99999999")),
    "doubled-header": ("bad_part_header", BODY.replace(b"X-Final: true\r\n", b"X-Final: true\r\nx-final: false\r\n")),
    "folded-header": ("bad_part_header", BODY.replace(b"X-Final: true", b"X-Final:\r\n true")),
    "space-before-colon": ("bad_part_header", BODY.replace(b"X-Final:", b"X-Final :")),
    "endless-headers": ("bad_part_header", b"--b1\r\nX: " + b"a" * 5_000),
    "trailing-data": ("trailing_data", BODY + b"x"),
    "not-closed": ("truncated_body", BODY.removesuffix(b"--\r\n")),
    "empty": ("truncated_body", b""),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_each_malformation_is_named(name: str, size: int) -> None:
    code, body = BAD[name]
    with pytest.raises(StreamViolation) as caught:
        read(body, size)
    assert caught.value.code == code


@pytest.mark.parametrize("value", ["multipart/mixed; boundary=b1", 'Multipart/Mixed;boundary="b1"'])
def test_boundary_is_read_from_the_media_type(value: str) -> None:
    assert boundary_of(value) == b"b1"


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "multipart/mixed",
        "audio/wav",
        'multipart/mixed; boundary="b1',
        "multipart/mixed; boundary=b1; boundary=b2",
    ],
)
def test_other_media_types_are_refused(value: str | None) -> None:
    with pytest.raises(StreamViolation, match="bad_content_type"):
        boundary_of(value)
