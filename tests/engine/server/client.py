"""A client that trusts nothing: raw HTTP over a socket and a strict reader of the multipart stream.

Independent of the server's writer on purpose, so that a mistake there cannot hide here.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

SPEECH = "/v1/voice-design/speech"


def speech_body(text: str = "Hello.", **fields: Any) -> dict[str, Any]:
    return {"text": text, "voice_description": "A calm voice.", **fields}


def request_bytes(
    method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None, *, json_type: bool = True
) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    if body or method == "POST":
        lines.append(f"Content-Length: {len(body)}")
        if json_type:
            lines.append("Content-Type: application/json")
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def speech_bytes(text: str = "Hello.", headers: dict[str, str] | None = None, **fields: Any) -> bytes:
    return request_bytes("POST", SPEECH, json.dumps(speech_body(text, **fields)).encode(), headers)


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part, headers in lower case."""

    headers: dict[str, str]
    body: bytes

    @property
    def is_audio(self) -> bool:
        return self.headers["content-type"].startswith("audio/pcm")

    @property
    def document(self) -> dict[str, Any]:
        assert self.headers["content-type"] == "application/json"
        found = json.loads(self.body)
        assert isinstance(found, dict)
        return found


class Wire:
    """One connection."""

    def __init__(self, address: tuple[str, int], *, receive_buffer: int | None = None, timeout: float = 10.0) -> None:
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        self.socket.connect(address)
        self.status = 0
        self.headers: dict[str, str] = {}
        self._buffer = b""
        self._body: Iterator[bytes] = iter(())
        self._unread = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> Wire:
        self.socket.sendall(data)
        return self

    def answer(self) -> Wire:
        """Read status and headers; the body follows on demand."""
        head = self._until(b"\r\n\r\n").decode("latin-1")
        first, *lines = head.split("\r\n")
        self.status = int(first.split(" ")[1])
        self.headers = {}
        for line in lines:
            name, _, value = line.partition(": ")
            assert name.lower() not in self.headers, f"header {name} twice"
            self.headers[name.lower()] = value
        self._body = self._chunks() if self.headers.get("transfer-encoding") == "chunked" else self._sized()
        self._unread = b""
        return self

    def whole(self) -> bytes:
        found = self._unread + b"".join(self._body)
        self._unread = b""
        return found

    def document(self) -> dict[str, Any]:
        found = json.loads(self.whole())
        assert isinstance(found, dict)
        return found

    def ask(self, data: bytes) -> Wire:
        return self.send(data).answer()

    def parts(self) -> Iterator[Part]:
        """The parts of a multipart answer, as they arrive; every framing rule is checked."""
        kind, _, boundary = self.headers["content-type"].partition("; boundary=")
        assert kind == "multipart/mixed"
        assert boundary
        delimiter = f"--{boundary}".encode()
        while True:
            line = self._body_line()
            if line == delimiter + b"--":
                assert self.whole() == b"", "bytes after the closing delimiter"
                return
            assert line == delimiter, f"not a delimiter: {line[:40]!r}"
            headers = {}
            while line := self._body_line():
                name, _, value = line.decode("ascii").partition(": ")
                headers[name.lower()] = value
            body = self._body_exactly(int(headers["content-length"]))
            assert self._body_exactly(2) == b"\r\n"
            yield Part(headers=headers, body=body)

    def _body_line(self) -> bytes:
        while b"\r\n" not in self._unread:
            self._unread += next(self._body)
        line, _, self._unread = self._unread.partition(b"\r\n")
        return line

    def _body_exactly(self, size: int) -> bytes:
        while len(self._unread) < size:
            self._unread += next(self._body)
        found, self._unread = self._unread[:size], self._unread[size:]
        return found

    def _sized(self) -> Iterator[bytes]:
        if "content-length" in self.headers:
            yield self._exactly(int(self.headers["content-length"]))

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self._until(b"\r\n"), 16):
            yield self._exactly(size)
            assert self._exactly(2) == b"\r\n"
        assert self._until(b"\r\n") == b""

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._buffer:
            self._more()
        found, _, self._buffer = self._buffer.partition(mark)
        return found

    def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._more()
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found

    def _more(self) -> None:
        data = self.socket.recv(65_536)
        if not data:
            raise EOFError("the server closed the connection")
        self._buffer += data
