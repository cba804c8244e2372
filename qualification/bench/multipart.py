"""An incremental, strict reader of `multipart/mixed` bodies that keeps arrival stamps.

A general MIME library accepts what the contract forbids (bare line feeds, parts without a length, text between parts)
and hides when each byte came. This reader takes the body in the pieces that the socket gave, with the time of each
read, and either yields complete parts or raises the first violation. It knows nothing of speech: `speech_stream`
judges the parts.

Accepted beyond the bare grammar: one CRLF before the first boundary (an empty preamble) and one after the last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto

MAX_HEADER_BYTES = 4_096
MAX_PART_BYTES = 65_536

_CRLF = b"\r\n"
_HEADER_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e\t]*?)[ \t]*")
_LENGTH = re.compile(r"0|[1-9][0-9]{0,9}")
_MEDIA_TYPE = re.compile(
    r"""\s*multipart/mixed\s*;\s*boundary=("?)([0-9A-Za-z'()+_,./:=?-]{1,70})\1\s*""", re.IGNORECASE
)


class StreamViolation(Exception):
    """The response breaks the wire contract. `code` names the rule, `detail` what was seen."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail


@dataclass(frozen=True, kw_only=True)
class Part:
    """One complete part. Stamps belong to the socket reads that brought the body's first and last byte."""

    headers: Mapping[str, str]
    body: bytes
    first_byte_ns: int
    last_byte_ns: int


def boundary_of(content_type: str | None) -> bytes:
    """The boundary named by a `Content-Type` header.

    Raises:
        StreamViolation: `bad_content_type` unless it is `multipart/mixed` with exactly one boundary parameter.
    """
    match = _MEDIA_TYPE.fullmatch(content_type or "")
    if match is None:
        raise StreamViolation("bad_content_type", f"expected multipart/mixed with a boundary, got {content_type!r}")
    return match[2].encode("ascii")


class _State(Enum):
    PREAMBLE = auto()
    HEADERS = auto()
    BODY = auto()
    DELIMITER = auto()
    EPILOGUE = auto()


class MultipartReader:
    """Feed body bytes with their arrival time; take complete parts.

    Every transition happens in the feed that completes it, so bytes left after a transition arrived in that same feed:
    this is what makes `first_byte_ns` exact without a stamp for each byte.
    """

    def __init__(self, boundary: bytes, *, max_part_bytes: int = MAX_PART_BYTES) -> None:
        self._dash = b"--" + boundary
        self._max_part_bytes = max_part_bytes
        self._buffer = bytearray()
        self._state = _State.PREAMBLE
        self._headers: dict[str, str] = {}
        self._length = 0
        self._first_byte_ns: int | None = None

    def feed(self, data: bytes, at_ns: int) -> Iterator[Part]:
        """Parts completed by `data`.

        Raises:
            StreamViolation: at the first byte that cannot belong to a well-formed body.
        """
        self._buffer += data
        while True:
            before = (self._state, len(self._buffer))
            part = self._step(at_ns)
            if part is not None:
                yield part
            elif before == (self._state, len(self._buffer)):
                return

    def finish(self) -> None:
        """Declare the body complete.

        Raises:
            StreamViolation: `truncated_body` where the closing boundary has not been seen.
        """
        if self._state is not _State.EPILOGUE:
            raise StreamViolation("truncated_body", f"body ended in state {self._state.name.lower()}")

    def _step(self, at_ns: int) -> Part | None:
        match self._state:
            case _State.PREAMBLE:
                self._read_preamble()
            case _State.HEADERS:
                self._read_headers()
            case _State.BODY:
                return self._read_body(at_ns)
            case _State.DELIMITER:
                self._read_delimiter()
            case _State.EPILOGUE:
                self._read_epilogue()
        return None

    def _read_preamble(self) -> None:
        opening = self._dash + _CRLF
        for prefix in (b"", _CRLF):
            expected = prefix + opening
            if self._buffer.startswith(expected):
                self._advance(len(expected), _State.HEADERS)
                return
        if not any((prefix + opening).startswith(self._buffer) for prefix in (b"", _CRLF)):
            raise StreamViolation("bad_boundary", f"body starts with {bytes(self._buffer[:80])!r}")

    def _read_headers(self) -> None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEADER_BYTES:
                raise StreamViolation("bad_part_header", f"no end of part headers within {MAX_HEADER_BYTES} bytes")
            return
        self._headers = _parse_headers(bytes(self._buffer[:end]))
        self._length = _content_length(self._headers, self._max_part_bytes)
        self._first_byte_ns = None
        self._advance(end + 4, _State.BODY)

    def _read_body(self, at_ns: int) -> Part | None:
        if self._buffer and self._first_byte_ns is None:
            self._first_byte_ns = at_ns
        if len(self._buffer) < self._length:
            return None
        body = bytes(self._buffer[: self._length])
        first = self._first_byte_ns if self._first_byte_ns is not None else at_ns
        self._advance(self._length, _State.DELIMITER)
        return Part(headers=self._headers, body=body, first_byte_ns=first, last_byte_ns=at_ns)

    def _read_delimiter(self) -> None:
        delimiter = _CRLF + self._dash
        head = bytes(self._buffer[: len(delimiter) + 2])
        if head == delimiter + _CRLF:
            self._advance(len(head), _State.HEADERS)
        elif head == delimiter + b"--":
            self._advance(len(head), _State.EPILOGUE)
        elif not any((delimiter + tail).startswith(head) for tail in (_CRLF, b"--")):
            raise StreamViolation("bad_boundary", f"expected a boundary after {self._length} bytes, got {head!r}")

    def _read_epilogue(self) -> None:
        if not _CRLF.startswith(self._buffer):
            raise StreamViolation("trailing_data", f"after the closing boundary: {bytes(self._buffer[:80])!r}")

    def _advance(self, count: int, state: _State) -> None:
        del self._buffer[:count]
        self._state = state


def _parse_headers(block: bytes) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in block.split(_CRLF):
        match = _HEADER_LINE.fullmatch(line)
        if match is None:
            raise StreamViolation("bad_part_header", f"not a header line: {line[:80]!r}")
        name = match[1].decode("ascii").lower()
        if name in headers:
            raise StreamViolation("bad_part_header", f"part header {name} appears twice")
        headers[name] = match[2].decode("ascii")
    return headers


def _content_length(headers: Mapping[str, str], limit: int) -> int:
    text = headers.get("content-length")
    if text is None or _LENGTH.fullmatch(text) is None:
        raise StreamViolation("bad_part_length", f"part Content-Length is {text!r}")
    if int(text) > limit:
        raise StreamViolation("bad_part_length", f"part of {text} bytes exceeds {limit}")
    return int(text)
