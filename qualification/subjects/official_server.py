"""The official package behind the wire contract: `python -m qualification.subjects.official_server --model DIR`.

Thin and honest: one request is spoken at a time, others wait; nothing is sent before an utterance is complete, so
its first audio comes with its last; EOS is known from the tokens drawn. `/v1/capabilities` says all three. It starts
like `engine serve`, with one `listening` line, and stops at SIGTERM. Not covered: WAV answers, cancellation, limits.
"""

from __future__ import annotations

import argparse
import json
import math
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Protocol

from qualification.subjects.buffered_answer import BOUNDARY, stream_body
from qualification.subjects.official_sampling import to_arguments
from qualification.subjects.refusal import Refused, problem

MODEL: Final = "official/qwen-tts-0.1.1"
LANGUAGES: Final = (
    "auto", "chinese", "english", "japanese", "korean", "german", "french", "russian", "portuguese", "spanish",
    "italian",
)  # fmt: skip
FRAMES_PER_SECOND: Final = 12.5
MAX_SECONDS: Final = 120.0
SLOTS: Final = 6


class Utterance(Protocol):
    """What a speaker gives back."""

    @property
    def pcm(self) -> bytes: ...

    @property
    def ended(self) -> bool: ...


class Speaker(Protocol):
    """Something that speaks whole utterances."""

    def speak(
        self, *, text: str, instruction: str, language: str, seed: int, frames: int, arguments: Mapping[str, Any]
    ) -> Utterance: ...


class Server(ThreadingHTTPServer):
    """The HTTP side of one speaker."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], speaker: Speaker, *, precision: str, device: str) -> None:
        super().__init__(address, _Handler)
        self._speaker = speaker
        self._turn = threading.Lock()
        self.capabilities = _capabilities(precision, device)

    def answer(self, body: Any, request_id: str) -> tuple[int, bytes]:
        """Seed and stream body of one request. Raises `Refused`."""
        began = time.monotonic_ns()
        if not isinstance(body, Mapping):
            raise Refused(400, "malformed_json", "the body is no JSON object")
        seed, frames, arguments = _settings(body)
        text, description, language = (_text(body, name) for name in ("text", "voice_description", "language"))
        if language not in LANGUAGES:
            raise Refused(422, "unsupported_language", f"language is one of {', '.join(LANGUAGES)}")
        with self._turn:
            spoken = self._speaker.speak(
                text=text,
                instruction=description,
                language=language,
                seed=seed,
                frames=frames,
                arguments=arguments,
            )
        wall = (time.monotonic_ns() - began) // 1_000
        return seed, stream_body(
            request_id=request_id,
            model=MODEL,
            seed=seed,
            pcm=spoken.pcm,
            ended=spoken.ended,
            wall_microseconds=wall,
        )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        known: dict[str, Mapping[str, Any]] = {
            "/health/live": {"status": "live"},
            "/health/ready": {"status": "ready", "model": MODEL, "model_kind": "voice_design",
                              "sample_rate_hz": 24_000, "engine_loaded": True},
            "/v1/capabilities": self.server.capabilities,
        }  # fmt: skip
        if self.path in known:
            self._send(200, "application/json", json.dumps(known[self.path], sort_keys=True).encode(), {})
        else:
            self._refuse(Refused(404, "not_found", "there is nothing here"))

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request_id = self.headers.get("X-Request-Id", "")
        try:
            seed, body = self.server.answer(_parsed(content), request_id)
        except Refused as refusal:
            self._refuse(refusal)
        except Exception as error:  # noqa: BLE001  # the next request must still be answered
            self._refuse(Refused(500, "internal_error", type(error).__name__))
        else:
            more = {"X-Request-Id": request_id, "X-Qwen3-Seed": str(seed), "Cache-Control": "no-store"}
            self._send(200, f"multipart/mixed; boundary={BOUNDARY}", body, more)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing: no request is logged."""

    def _refuse(self, refusal: Refused) -> None:
        document = problem(refusal)
        self._send(refusal.status, "application/problem+json", json.dumps(document, sort_keys=True).encode(), {})

    def _send(self, status: int, kind: str, body: bytes, more: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **more}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        raise Refused(400, "malformed_json", "the body is no JSON") from error


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name, "auto" if name == "language" else "")
    if not isinstance(value, str) or not value.strip():
        raise Refused(422, f"invalid_{name}", f"{name} must be a text that is not empty")
    return value.lower() if name == "language" else value


def _settings(body: Mapping[str, Any]) -> tuple[int, int, dict[str, Any]]:
    """Seed, most frames, and arguments of `generate`."""
    seed, seconds = body.get("seed"), body.get("max_duration_seconds", MAX_SECONDS)
    if type(seed) is not int or seed < 0:
        raise Refused(422, "invalid_seed", "give a seed, 0 or more: this adapter draws none")
    if type(seconds) not in (int, float) or not 0.08 <= seconds <= MAX_SECONDS:
        raise Refused(422, "invalid_max_duration", f"max_duration_seconds must be within 0.08 and {MAX_SECONDS}")
    try:
        arguments = to_arguments(body.get("sampling", {}))
    except (ValueError, TypeError, AttributeError) as error:
        raise Refused(422, "invalid_sampling", str(error)) from error
    return seed, math.ceil(seconds * FRAMES_PER_SECOND), arguments


def _capabilities(precision: str, device: str) -> dict[str, Any]:
    return {
        "model": MODEL, "model_kind": "voice_design", "voice_clone": False, "sample_rate_hz": 24_000, "channels": 1,
        "encoding": "pcm_s16le", "samples_per_codec_frame": 1_920, "max_codec_frames": int(MAX_SECONDS * 12.5),
        "max_concurrent_requests": SLOTS, "max_duration_seconds": MAX_SECONDS, "languages": list(LANGUAGES),
        "streaming": "multipart/mixed", "precision": precision, "device": device,
        "delivery": "buffered", "service": "one_at_a_time", "eos": "from_tokens",
    }  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Load the model, speak once to warm up, then serve until SIGTERM."""
    import torch

    from qualification.subjects.official_model import OfficialSpeaker

    parser = argparse.ArgumentParser(prog="official_server", description="The official package behind the contract.")
    parser.add_argument("--model", type=Path, required=True, help="model directory")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "bf16"), help="type of talker and predictor")
    parser.add_argument("--threads", type=int, default=0, help="threads of the processor; 0: torch decides")
    parser.add_argument("--port", type=int, default=0, help="port on the loopback interface; 0: any free one")
    given = parser.parse_args(argv)
    if given.threads:
        torch.set_num_threads(given.threads)
    dtype = torch.bfloat16 if given.precision == "bf16" else torch.float32
    speaker = OfficialSpeaker(given.model, device=given.device, dtype=dtype)
    speaker.speak(
        text="Ready.", instruction="A calm voice.", language="auto", seed=0, frames=4, arguments=to_arguments({})
    )
    server = Server(("127.0.0.1", given.port), speaker, precision=given.precision, device=given.device)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    print(json.dumps({"event": "listening", "host": "127.0.0.1", "port": server.server_address[1]}), flush=True)
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
