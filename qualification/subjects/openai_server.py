"""Any OpenAI-shaped speech endpoint behind the wire contract: `python -m qualification.subjects.openai_server --endpoint URL`.

PCM (24 kHz, mono, 16 bit) is asked for, and each stretch of it is passed on when it arrives, cut into whole frames; what
is left of a frame at the end is dropped and logged, never padded. The endpoint tells no end of speech, so none is told
here; at the ceiling the adapter hangs up and says so. Of seed, language and ceiling only what `--takes` names is sent;
the rest is named in `leaves_open`. The connection to the endpoint is opened when the client's is, before a request.

Not covered: other audio formats, events, retries, and whatever runs the endpoint: nothing there is sampled or hashed.
"""

from __future__ import annotations

import argparse
import http.client
import json
import math
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from qualification.bench.target import Target, parse_target
from qualification.errors import UsageError
from qualification.subjects.buffered_answer import AUDIO, BOUNDARY, FRAME_BYTES, audio_part, json_part
from qualification.subjects.refusal import Refused, problem

PATH: Final = "/v1/audio/speech"
TAKES: Final[Mapping[str, str]] = {"seed": "seed", "language": "language", "max_duration": "max_duration_seconds"}
FRAMES_PER_SECOND: Final = 12.5
MOST_FRAMES: Final = 4
SECONDS_SILENT: Final = 60.0
LANGUAGES: Final = (
    "auto", "chinese", "english", "japanese", "korean", "german", "french", "russian", "portuguese", "spanish",
    "italian",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """The endpoint and what it may be told. `token`: sent as bearer, None: none."""

    target: Target
    model: str
    voice: str
    takes: frozenset[str]
    token: str | None
    slots: int
    max_seconds: float

    def connect(self) -> http.client.HTTPConnection:
        """An open connection. Raises `OSError`."""
        kind = http.client.HTTPSConnection if self.target.tls else http.client.HTTPConnection
        connection = kind(self.target.host, self.target.port, timeout=SECONDS_SILENT)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def ask(self, connection: http.client.HTTPConnection, body: Mapping[str, Any]) -> http.client.HTTPResponse:
        """Send one request of the wire as this endpoint wants it."""
        document = {
            "model": self.model,
            "voice": self.voice,
            "input": body["text"],
            "instructions": body["voice_description"],
            "response_format": "pcm",
            **{TAKES[name]: body[TAKES[name]] for name in self.takes},
        }
        headers = {"Content-Type": "application/json", "X-Request-Id": body["request_id"]}
        headers |= {"Authorization": f"Bearer {self.token}"} if self.token else {}
        connection.request("POST", self.target.prefix.removesuffix("/v1") + PATH, json.dumps(document), headers)
        return connection.getresponse()

    @property
    def capabilities(self) -> dict[str, Any]:
        return {
            "model": self.model, "model_kind": "voice_design", "sample_rate_hz": 24_000, "channels": 1,
            "encoding": "pcm_s16le", "samples_per_codec_frame": 1_920, "max_concurrent_requests": self.slots,
            "max_duration_seconds": self.max_seconds, "languages": list(LANGUAGES), "streaming": "multipart/mixed",
            "role": "adapter", "delivery": "as_observed",
            "leaves_open": sorted({"eos", "sampling", *TAKES} - self.takes),
        }  # fmt: skip


class Server(ThreadingHTTPServer):
    """The contract's side."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], endpoint: Endpoint) -> None:
        super().__init__(address, _Handler)
        self.endpoint = endpoint


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server
    _upstream: http.client.HTTPConnection | None = None

    def setup(self) -> None:
        """The client opens its connection before it counts; so is the endpoint's."""
        super().setup()
        try:
            self._upstream = self.server.endpoint.connect()
        except OSError as error:
            self._unreachable = str(error)

    def finish(self) -> None:
        if self._upstream is not None:
            self._upstream.close()
        super().finish()

    def do_GET(self) -> None:
        ready = self._upstream is not None
        known: dict[str, tuple[int, Mapping[str, Any]]] = {
            "/health/live": (200, {"status": "live"}),
            "/health/ready": (200, {"status": "ready"}) if ready else (503, {"status": "not ready"}),
            "/v1/capabilities": (200, self.server.endpoint.capabilities),
        }
        status, document = known.get(self.path, (404, problem(Refused(404, "not_found", "there is nothing here"))))
        self._send(status, "application/json", json.dumps(document, sort_keys=True).encode())

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            body = _parsed(content) | {"request_id": self.headers.get("X-Request-Id", "")}
            response = self._asked(body)
        except Refused as refusal:
            document = json.dumps(problem(refusal), sort_keys=True).encode()
            self._send(refusal.status, "application/problem+json", document)
        else:
            with suppress(BrokenPipeError, ConnectionResetError):  # a client that left needs no answer
                self._pass_on(body, response)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing: no request is logged."""

    def _asked(self, body: Mapping[str, Any]) -> http.client.HTTPResponse:
        if self._upstream is None:
            raise Refused(502, "endpoint_unreachable", self._unreachable)
        try:
            response = self.server.endpoint.ask(self._upstream, body)
        except KeyError as error:
            raise Refused(422, "missing_field", f"the request has no {error.args[0]}") from error
        except (OSError, http.client.HTTPException) as error:
            raise Refused(502, "endpoint_failed", f"{type(error).__name__}: {error}") from error
        if response.status != 200:
            detail = response.read(2_000).decode("utf-8", "replace")[:300]
            status = response.status if 400 <= response.status < 600 else 502
            raise Refused(status, f"endpoint_{response.status}", detail or "no detail was given")
        if "seed" in self.server.endpoint.takes and response.getheader("x-qwen3-seed") != str(body["seed"]):
            raise Refused(502, "seed_not_echoed", "the endpoint does not echo the seed; leave it out of --takes")
        return response

    def _pass_on(self, body: Mapping[str, Any], response: http.client.HTTPResponse) -> None:
        seed = body["seed"] if "seed" in self.server.endpoint.takes else None
        self.send_response(200)
        told = {"Content-Type": f"multipart/mixed; boundary={BOUNDARY}", "Transfer-Encoding": "chunked",
                "X-Request-Id": body["request_id"], "Cache-Control": "no-store"}  # fmt: skip
        for name, value in (told | ({} if seed is None else {"X-Qwen3-Seed": str(seed)})).items():
            self.send_header(name, value)
        self.end_headers()
        start = {"type": "start", "request_id": body["request_id"], "model": self.server.endpoint.model, "seed": seed,
                 "audio": AUDIO}  # fmt: skip
        self._chunk(json_part(start))
        for part in _parts(response, body):
            self._chunk(part)
        self._chunk(f"--{BOUNDARY}--\r\n".encode())
        self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True


def _parts(response: http.client.HTTPResponse, body: Mapping[str, Any]) -> Iterator[bytes]:
    """The audio parts as the sound arrives, then the end or an error part."""
    most = math.ceil(body["max_duration_seconds"] * FRAMES_PER_SECOND)
    held, frames, packets = b"", 0, 0
    try:
        while frames < most and (arrived := response.read1(65_536)):
            held += arrived
            if not frames and held[:4] == b"RIFF":
                yield _error(body, "not_pcm", "the endpoint answered PCM with a WAV file")
                return
            while len(held) >= FRAME_BYTES and frames < most:
                count = min(1 if packets == 0 else MOST_FRAMES, len(held) // FRAME_BYTES, most - frames)
                yield audio_part(held[: count * FRAME_BYTES], number=packets, first=frames, final=None)
                held, frames, packets = held[count * FRAME_BYTES :], frames + count, packets + 1
        cut = frames == most and (len(held) > 0 or bool(response.read1(1)))
    except (OSError, http.client.HTTPException) as error:
        yield _error(body, "endpoint_broke_off", f"{type(error).__name__}: {error}")
        return
    if not cut and response.length:
        yield _error(body, "endpoint_broke_off", f"{response.length} bytes of its answer are missing")
    elif not frames:
        yield _error(body, "no_audio", "the endpoint sent less than a frame of sound")
    else:
        if held and not cut:
            _log({"event": "dropped", "request_id": body["request_id"], "bytes": len(held)})
        yield _end(body, frames, packets, "length" if cut else None)


def _end(body: Mapping[str, Any], frames: int, packets: int, reason: str | None) -> bytes:
    metrics = {"emitted_samples": frames * FRAME_BYTES // 2, "emitted_packets": packets}
    return json_part({"type": "end", "request_id": body["request_id"], "finish_reason": reason, "metrics": metrics})


def _error(body: Mapping[str, Any], code: str, detail: str) -> bytes:
    error = {"code": code, "detail": detail}
    return json_part({"type": "error", "request_id": body["request_id"], "error": error})


def _parsed(content: bytes) -> dict[str, Any]:
    try:
        body = json.loads(content)
    except ValueError as error:
        raise Refused(400, "malformed_json", "the body is no JSON") from error
    if not isinstance(body, dict):
        raise Refused(400, "malformed_json", "the body is no JSON object")
    seconds = body.get("max_duration_seconds")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds < 0.08:
        raise Refused(422, "invalid_max_duration", "max_duration_seconds must be at least 0.08")
    return body


def _log(document: Mapping[str, Any]) -> None:
    print(json.dumps(document, sort_keys=True), flush=True)


def _endpoint(argv: Sequence[str] | None) -> tuple[Endpoint, int]:
    parser = argparse.ArgumentParser(prog="openai_server", description="An OpenAI-shaped endpoint behind the contract.")
    parser.add_argument("--endpoint", required=True, metavar="URL", help="base URL, without /audio/speech")
    parser.add_argument("--model", required=True, help="name that the endpoint knows its model by")
    parser.add_argument("--voice", default="alloy", help="the endpoint's voice; the description goes into instructions")
    parser.add_argument("--takes", default="", metavar="LIST", help=f"additions it takes: {','.join(TAKES)}")
    parser.add_argument("--token-from", metavar="VARIABLE", help="environment variable with a bearer token")
    parser.add_argument("--slots", type=int, default=6, help="requests that it takes at once")
    parser.add_argument("--max-seconds", type=float, default=120.0, help="longest utterance to wait for")
    parser.add_argument("--port", type=int, default=0, help="port on the loopback interface; 0: any free one")
    given = parser.parse_args(argv)
    takes = frozenset(filter(None, given.takes.split(",")))
    if takes - TAKES.keys():
        parser.error(f"--takes {given.takes}: choose from {', '.join(TAKES)}")
    try:
        target = parse_target(given.endpoint)
    except UsageError as error:
        parser.error(str(error))
    token = os.environ.get(given.token_from) if given.token_from else None
    if given.token_from and not token:
        parser.error(f"--token-from {given.token_from}: the environment has no such variable")
    endpoint = Endpoint(target=target, model=given.model, voice=given.voice, takes=takes, token=token,
                        slots=given.slots, max_seconds=given.max_seconds)  # fmt: skip
    return endpoint, given.port


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM; one `listening` line tells where."""
    endpoint, port = _endpoint(argv)
    server = Server(("127.0.0.1", port), endpoint)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    _log({"event": "listening", "host": "127.0.0.1", "port": server.server_address[1]})
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
