"""Speaks the wire contract: one speech request in, one observation out, whatever happens in between.

`speak` never raises for what the other side does: a refusal, a broken stream, a lost connection and a passed deadline
are observations with an outcome and a code, because a benchmark that drops its failures makes an overloaded server
look fast. `fetch` is for the small fixed-length answers (health, capabilities, WAV, problems). Scheduling lives in
`load`.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import h11

from qualification.bench.clock import Clock
from qualification.bench.connection import Connection, ConnectionFailed, DeadlinePassed, Deadlines
from qualification.bench.multipart import MultipartReader, StreamViolation, boundary_of
from qualification.bench.raw import Packet, RequestOutcome, ServerMetrics
from qualification.bench.speech_stream import SpeechStream, error_code
from qualification.bench.target import Target
from qualification.errors import StrictJsonError
from qualification.strictjson import loads

SPEECH_PATH = "/v1/voice-design/speech"
FRAMES_PER_SECOND = 12.5
MAX_PLAIN_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class SpeechCall:
    """What one request asks for. `sampling` is the wire object, empty for the server's defaults. Of a subject that
    `leaves_open` the seed or how speech ended, neither is demanded, and neither is made up."""

    request_id: str
    text: str
    voice_description: str
    language: str
    seed: int
    max_duration_seconds: float
    sampling: Mapping[str, Any]
    leaves_open: frozenset[str] = frozenset()

    @property
    def max_frames(self) -> int:
        return math.ceil(self.max_duration_seconds * FRAMES_PER_SECOND)

    def body(self) -> bytes:
        """The JSON body; `stream` and `output_format` are explicit so that nothing is inferred."""
        document: dict[str, Any] = {
            "text": self.text,
            "voice_description": self.voice_description,
            "language": self.language,
            "seed": self.seed,
            "max_duration_seconds": self.max_duration_seconds,
            "stream": True,
            "output_format": "pcm_s16le",
        }
        if self.sampling:
            document["sampling"] = dict(self.sampling)
        return json.dumps(document, ensure_ascii=False, sort_keys=True).encode()


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What the client saw of one request, in the words of `raw.RequestRecord`.

    Where no connection could be opened nothing was sent: `t0_ns` is then the moment of the failure.
    """

    outcome: RequestOutcome
    http_status: int | None = None
    error_code: str | None = None
    error_detail: str | None = None
    t0_ns: int
    headers_ns: int | None = None
    end_ns: int
    packets: tuple[Packet, ...] = ()
    finish_reason: str | None = None
    echoed_seed: int | None = None
    pcm: bytes = b""
    pcm_sha256: str | None = None
    server_metrics: ServerMetrics | None = None

    @property
    def samples(self) -> int:
        """PCM samples received, whatever the outcome."""
        return sum(packet.samples for packet in self.packets)


@dataclass(frozen=True, kw_only=True)
class Plain:
    """A complete fixed-length response. `headers` has lower-case names."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as strict JSON; raises `StrictJsonError`."""
        return loads(self.body, "response body")


class _Exchange:
    """State of one speech exchange, so that a failure at any point still leaves an observation."""

    def __init__(self, call: SpeechCall, clock: Clock) -> None:
        self._call = call
        self._clock = clock
        self._stream = SpeechStream(
            request_id=call.request_id,
            seed=None if "seed" in call.leaves_open else call.seed,
            max_frames=call.max_frames,
            ends_open="eos" in call.leaves_open,
        )
        self._status: int | None = None
        self._t0_ns = clock.now_ns()
        self._headers_ns: int | None = None

    async def run(self, connection: Connection) -> Observation:
        headers = [("Content-Type", "application/json"), ("Accept", "multipart/mixed"),
                   ("X-Request-Id", self._call.request_id)]  # fmt: skip
        try:
            self._t0_ns = connection.send("POST", SPEECH_PATH, headers, self._call.body())
            return await self._receive(connection)
        except StreamViolation as error:
            return self._failed(RequestOutcome.STREAM_ERROR, error.code, error.detail)
        except ConnectionFailed as error:
            return self._failed(RequestOutcome.TRANSPORT_ERROR, error.code, error.detail)
        except DeadlinePassed as error:
            return self._failed(RequestOutcome.TIMEOUT, error.code, error.detail)

    async def _receive(self, connection: Connection) -> Observation:
        reader: MultipartReader | None = None
        refusal = bytearray()
        async for at_ns, event in connection.events():
            if isinstance(event, h11.Response):
                self._headers_ns, self._status = at_ns, event.status_code
                if event.status_code == 200:
                    reader = self._open_stream(_headers_of(event))
            elif isinstance(event, h11.EndOfMessage):
                return self._ended(reader, bytes(refusal), at_ns)
            elif reader is not None:
                for part in reader.feed(bytes(event.data), at_ns):
                    self._stream.accept(part)
            elif len(refusal) < 65_536:
                refusal += event.data
        raise ConnectionFailed("connection_lost", "the response has no end")

    def _open_stream(self, headers: Mapping[str, str]) -> MultipartReader:
        reader = MultipartReader(boundary_of(headers.get("content-type")))
        if headers.get("x-request-id") != self._call.request_id:
            raise StreamViolation("wrong_request_id", f"header x-request-id is {headers.get('x-request-id')!r}")
        if "seed" not in self._call.leaves_open and headers.get("x-qwen3-seed") != str(self._call.seed):
            raise StreamViolation("seed_not_echoed", f"header x-qwen3-seed is {headers.get('x-qwen3-seed')!r}")
        if headers.get("cache-control") != "no-store":
            raise StreamViolation("cacheable_stream", f"header cache-control is {headers.get('cache-control')!r}")
        return reader

    def _ended(self, reader: MultipartReader | None, refusal: bytes, at_ns: int) -> Observation:
        if reader is None:
            return self._refused(self._status or 0, refusal, at_ns)
        reader.finish()
        self._stream.finish()
        return self._observation(RequestOutcome.OK, at_ns, None, None)

    def _refused(self, status: int, body: bytes, at_ns: int) -> Observation:
        code, detail = read_problem(status, body)
        if status >= 400:
            return self._failed(RequestOutcome.REFUSED, code, detail, at_ns)
        outcome = RequestOutcome.STREAM_ERROR if status < 300 else RequestOutcome.TRANSPORT_ERROR
        return self._failed(outcome, "unexpected_status", f"HTTP {status} is neither a stream nor a refusal", at_ns)

    def _failed(self, outcome: RequestOutcome, code: str, detail: str, at_ns: int | None = None) -> Observation:
        end_ns = self._clock.now_ns() if at_ns is None else at_ns
        return self._observation(outcome, end_ns, code, detail[:500] or "no detail was given")

    def _observation(self, outcome: RequestOutcome, end_ns: int, code: str | None, detail: str | None) -> Observation:
        stream = self._stream
        return Observation(
            outcome=outcome,
            http_status=self._status,
            error_code=code,
            error_detail=detail,
            t0_ns=self._t0_ns,
            headers_ns=self._headers_ns,
            end_ns=end_ns,
            packets=tuple(stream.packets),
            finish_reason=stream.finish_reason if outcome is RequestOutcome.OK else None,
            echoed_seed=stream.echoed_seed,
            pcm=bytes(stream.pcm),
            pcm_sha256=stream.pcm_sha256 if stream.packets else None,
            server_metrics=stream.metrics if outcome is RequestOutcome.OK else None,
        )


async def speak(connection: Connection, call: SpeechCall, clock: Clock) -> Observation:
    """Send `call` over an open connection and follow its stream to the end, closing the connection."""
    try:
        return await _Exchange(call, clock).run(connection)
    finally:
        connection.close()


async def open_for_speech(target: Target, clock: Clock, deadlines: Deadlines) -> Connection | Observation:
    """An open connection, or the observation of its failure (no t0: nothing was sent)."""
    try:
        return await Connection.open(target, clock, deadlines)
    except ConnectionFailed as error:
        outcome, code, detail = RequestOutcome.TRANSPORT_ERROR, error.code, error.detail
    except DeadlinePassed as error:
        outcome, code, detail = RequestOutcome.TIMEOUT, error.code, error.detail
    at_ns = clock.now_ns()
    return Observation(outcome=outcome, error_code=code, error_detail=detail, t0_ns=at_ns, end_ns=at_ns)


async def fetch(
    target: Target,
    method: str,
    path: str,
    *,
    clock: Clock,
    deadlines: Deadlines,
    body: bytes = b"",
    headers: Sequence[tuple[str, str]] = (),
) -> Plain:
    """One plain exchange on a connection of its own.

    Raises:
        ConnectionFailed: no connection, a broken one, or more than `MAX_PLAIN_BYTES` of body.
        DeadlinePassed: one of the deadlines.
    """
    connection = await Connection.open(target, clock, deadlines)
    try:
        connection.send(method, path, headers, body)
        response, content = None, bytearray()
        async for _, event in connection.events():
            if isinstance(event, h11.Response):
                response = event
            elif isinstance(event, h11.Data):
                content += event.data
                if len(content) > MAX_PLAIN_BYTES:
                    raise ConnectionFailed("malformed_http", f"the answer to {path} exceeds {MAX_PLAIN_BYTES} bytes")
        if response is None:
            raise ConnectionFailed("connection_lost", f"no response to {path}")
        return Plain(status=response.status_code, headers=_headers_of(response), body=bytes(content))
    finally:
        connection.close()


def fetch_blocking(target: Target, path: str, *, clock: Clock, deadlines: Deadlines) -> Plain:
    """`fetch` of a GET for callers outside an event loop; raises the same errors."""
    return asyncio.run(fetch(target, "GET", path, clock=clock, deadlines=deadlines))


def read_problem(status: int, body: bytes) -> tuple[str, str]:
    """(code, detail) of a refusal: the problem document's own, or `http_<status>` where it is not one."""
    fallback = f"http_{status}"
    try:
        document = loads(body, "problem document")
    except StrictJsonError:
        return fallback, "the refusal carries no problem document"
    if not isinstance(document, Mapping):
        return fallback, "the refusal carries no problem document"
    return error_code(document.get("code"), fallback), str(document.get("detail", ""))[:500]


def _headers_of(response: h11.Response) -> dict[str, str]:
    """Lower-case names; a repeated name keeps all values joined by a comma, so that it cannot pass for one."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in response.headers:
        name, value = raw_name.decode("ascii").lower(), raw_value.decode("latin-1").strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers
