"""A small contract server for the harness's tests. It can keep every rule or break exactly one, by name.

The audio is a made-up voice (harmonics under a syllable envelope with pauses), a pure function of text, description
and seed, so that gates on audio and reproducibility have something to measure. No model, no speech: nothing measured
here is a claim about an engine.

Run as a program it behaves like `python -m engine serve`: one `listening` line on stdout, then service until SIGTERM.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import io
import json
import os
import signal
import threading
import wave
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

SAMPLES = 1_920
BOUNDARY = "fake-boundary-7d1f"
LANGUAGES = [
    "auto",
    "chinese",
    "english",
    "japanese",
    "korean",
    "german",
    "french",
    "russian",
    "portuguese",
    "spanish",
    "italian",
]
METRICS = {
    "queue_microseconds": 1,
    "prefill_microseconds": 2,
    "first_codec_frame_microseconds": 3,
    "first_audio_microseconds": 4,
    "wall_microseconds": 5,
    "talker_gpu_microseconds": None,
    "codec_gpu_microseconds": None,
    "peak_request_device_bytes": None,
    "peak_request_host_bytes": None,
}


@dataclass
class Behaviour:
    """What this server does. `fault` names the one rule that it breaks, on all requests or those in `only`."""

    fault: str | None = None
    only: tuple[int, ...] | None = None
    frame_seconds: float = 0.0
    slots: int = 8
    frames_per_character: float = 0.2
    die_after: int | None = None  # the process exits in the middle of this request (counted from 0)
    fleet: Any = None  # what /v1/fleet answers; nothing is served there without it
    seen: list[dict[str, Any]] = field(default_factory=list)
    peak_active: int = 0


def voice(text: str, description: str, seed: int, frames: int) -> NDArray[np.int16]:
    """`frames` x 1,920 samples of syllable-like sound, reproducible."""
    key = hashlib.sha256(f"{text}|{description}|{seed}".encode()).digest()
    draw = np.random.default_rng(int.from_bytes(key[:8], "big"))
    time = np.arange(frames * SAMPLES) / 24_000
    pitch = 110 + 90 * draw.random() + 12 * np.sin(2 * np.pi * 2.3 * time + draw.random())
    phase = 2 * np.pi * np.cumsum(pitch) / 24_000
    tone = sum(np.sin(k * phase) / k for k in range(1, 12))
    envelope = np.clip(np.sin(2 * np.pi * 3.1 * time + 0.4), 0.0, 1.0)
    noise = 0.02 * draw.standard_normal(time.size)
    return np.asarray(6_000 * (tone + noise) * envelope, dtype=np.int16)


class FakeServer:
    """`async with FakeServer(behaviour) as server: server.url`."""

    def __init__(self, behaviour: Behaviour | None = None) -> None:
        self.behaviour = behaviour or Behaviour()
        self.port = 0
        self._active = 0
        self._count = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> FakeServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            lines = head.split("\r\n")
            method, path, _ = lines[0].split(" ", 2)
            headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            await self._route(writer, method, path, headers, body)
            await writer.drain()
        self._writers.discard(writer)
        writer.close()

    async def _route(
        self, writer: asyncio.StreamWriter, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> None:
        fault = self.behaviour.fault
        if path == "/health/ready":
            ready = fault != "never_ready"
            status = {
                "status": "ready" if ready else "not_ready",
                "model": "fake",
                "model_kind": "voice_design",
                "sample_rate_hz": 24_000,
                "engine_loaded": ready,
            }
            return _answer(writer, 200 if ready else 503, status)
        if path == "/v1/capabilities":
            return _answer(writer, 200, _capabilities(self.behaviour.slots))
        if method == "POST" and path == "/v1/voice-design/speech":
            return await self._speech(writer, headers, body)
        if path == "/v1/fleet" and self.behaviour.fleet is not None:
            return _answer(writer, 200, self.behaviour.fleet)
        return _problem(writer, 404, "not_found")

    async def _speech(self, writer: asyncio.StreamWriter, headers: dict[str, str], body: bytes) -> None:
        refusal = _refusal(body)
        if refusal is not None and self.behaviour.fault != "accepts_anything":
            return _problem(writer, *refusal)
        request = json.loads(body)
        index, self._count = self._count, self._count + 1
        self.behaviour.seen.append(request)
        if self._active >= self.behaviour.slots or self._fault(index) == "busy":
            return _problem(writer, 429, "capacity_exhausted")
        self._active += 1
        self.behaviour.peak_active = max(self.behaviour.peak_active, self._active)
        try:
            if request.get("output_format") == "wav":
                self._wav(writer, request, headers["x-request-id"])
            else:
                await self._stream(writer, request, headers["x-request-id"], index)
        finally:
            self._active -= 1

    def _fault(self, index: int) -> str | None:
        only = self.behaviour.only
        return self.behaviour.fault if only is None or index in only else None

    def _pcm(self, request: dict[str, Any], fault: str | None) -> NDArray[np.int16]:
        natural = max(3, round(len(request["text"].encode()) * self.behaviour.frames_per_character))
        frames = min(natural, int(request["max_duration_seconds"] * 12.5))
        seed = request["seed"] if fault != "seed_ignored" else int.from_bytes(os.urandom(4), "big")
        pcm = voice(request["text"], request["voice_description"], seed, frames)
        if fault == "silence":
            return np.zeros_like(pcm)
        if fault == "clipping":
            return np.where(pcm >= 0, 32_767, -32_768).astype(np.int16)
        return pcm

    def _wav(self, writer: asyncio.StreamWriter, request: dict[str, Any], request_id: str) -> None:
        fault = self.behaviour.fault
        stream = io.BytesIO()
        with wave.open(stream, "wb") as out:
            out.setparams((1, 2, 24_000, 0, "NONE", ""))
            out.writeframes(self._pcm({**request, "seed": request["seed"] + (fault == "wav_differs")}, fault).tobytes())
        extra = {"X-Request-Id": request_id, "X-Qwen3-Seed": str(request["seed"]), "X-Finish-Reason": "stop"}
        _respond(writer, 200, "audio/wav", stream.getvalue(), extra)

    async def _stream(self, writer: asyncio.StreamWriter, request: dict[str, Any], request_id: str, index: int) -> None:
        fault = self._fault(index)
        pcm = self._pcm(request, fault)
        if fault == "silent_before_headers":
            await asyncio.sleep(3_600)
        writer.write(_stream_head(request_id, request["seed"] + (fault == "wrong_seed_header"), fault))
        async for piece in self._pieces(pcm, request, request_id, fault):
            if fault == "byte_by_byte":
                for offset in range(0, len(piece), 1_000):
                    _chunk(writer, piece[offset : offset + 1_000])
                    await asyncio.sleep(0)
            else:
                _chunk(writer, piece)
            await writer.drain()
            if self.behaviour.die_after is not None and index >= self.behaviour.die_after and b"audio/pcm" in piece:
                os._exit(9)
            if fault == "dies_mid_stream" and b"audio/pcm" in piece:
                writer.transport.abort()
                return
            if fault == "closes_mid_stream" and b"audio/pcm" in piece:
                return
        writer.write(b"0\r\n\r\n")

    async def _pieces(
        self, pcm: NDArray[np.int16], request: dict[str, Any], request_id: str, fault: str | None
    ) -> AsyncIterator[bytes]:
        yield _start(request, request_id, fault)
        if fault == "silent_after_start":
            await asyncio.sleep(3_600)
        if fault == "second_start":
            yield b"\r\n" + _start(request, request_id, fault)
        if fault == "error_part":
            yield _json_part(
                {
                    "type": "error",
                    "request_id": request_id,
                    "error": {"code": "internal_error", "detail": "the fake failed on purpose"},
                }
            )
            yield f"\r\n--{BOUNDARY}--\r\n".encode()
            return
        packets = 0
        for packet in _packets(pcm, fault):
            await asyncio.sleep(self.behaviour.frame_seconds * packet.frames)
            packets += 1
            yield packet.encode(fault)
        if fault != "no_end":
            yield _end(request_id, pcm.size, packets, request, fault)
        closing = f"\r\n--{BOUNDARY}--\r\n".encode()
        yield {"unclosed": b"\r\n", "trailing_data": closing + b"more"}.get(fault or "", closing)


@dataclass
class _Packet:
    sequence: int
    first: int
    frames: int
    pcm: bytes
    final: bool

    def encode(self, fault: str | None) -> bytes:
        gap = 1 if fault == "gap" and self.sequence == 2 else 0
        headers = {
            "Content-Type": "audio/pcm;rate=48000;channels=1;format=s16le"
            if fault == "wrong_rate"
            else "audio/pcm;rate=24000;channels=1;format=s16le",
            "Content-Length": str(len(self.pcm) + (2 if fault == "wrong_length" else 0)),
            "X-Sequence": str(self.sequence + gap),
            "X-First-Codec-Frame": str(self.first),
            "X-First-Sample": str(self.first * SAMPLES),
            "X-Sample-Count": str(self.frames * SAMPLES),
            "X-Codec-Frames": str(self.frames + (fault == "frames_lie")),
            "X-Final": str(self.final and fault != "no_final").lower(),
        }
        if fault == "no_length":
            del headers["Content-Length"]
        end = "\n" if fault == "bare_line_feeds" else "\r\n"
        if fault == "doubled_header":
            headers["x-final"] = "false"
        block = end.join(f"{name}: {value}" for name, value in headers.items())
        boundary = "another" if fault == "wrong_boundary" else BOUNDARY
        return f"\r\n--{boundary}{end}{block}{end}{end}".encode() + self.pcm


def _packets(pcm: NDArray[np.int16], fault: str | None) -> Iterator[_Packet]:
    total = pcm.size // SAMPLES
    first, sequence = 0, 0
    while first < total and fault != "no_audio":
        frames = 1 if sequence == 0 and fault != "fat_first_packet" else 4
        frames = min(5 if fault == "fat_packet" and sequence else frames, total - first)
        body = pcm[first * SAMPLES : (first + frames) * SAMPLES].tobytes()
        yield _Packet(
            sequence, first, frames, body, first + frames == total or (fault == "early_final" and sequence == 1)
        )
        first, sequence = first + frames, sequence + 1


def _json_part(document: dict[str, Any], first: bool = False) -> bytes:
    body = json.dumps(document).encode()
    lead = "" if first else "\r\n"
    return (
        f"{lead}--{BOUNDARY}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    )


def _start(request: dict[str, Any], request_id: str, fault: str | None) -> bytes:
    kind = "begin" if fault == "odd_start" else "start"
    echoed = request["seed"] + (1 if fault == "wrong_seed" else 0)
    document = {
        "type": kind,
        "request_id": "00000000-0000-4000-8000-000000000000" if fault == "wrong_request_id" else request_id,
        "model": "fake",
        "seed": echoed,
        "audio": {"encoding": "pcm_s16le", "sample_rate_hz": 24_000, "channels": 1, "samples_per_codec_frame": SAMPLES},
    }
    part = _json_part(document, first=True)
    return part.replace(b'"type"', b'"type": "start", "type"') if fault == "duplicate_key" else part


def _end(request_id: str, samples: int, packets: int, request: dict[str, Any], fault: str | None) -> bytes:
    capped = samples // SAMPLES >= int(request["max_duration_seconds"] * 12.5)
    reason = "length" if capped or fault == "never_ends" else "stop"
    lie = SAMPLES if fault == "metrics_lie" else 0
    metrics = {
        **METRICS,
        "generated_codec_frames": samples // SAMPLES,
        "emitted_samples": samples + lie,
        "emitted_packets": packets,
    }
    return _json_part(
        {
            "type": "end",
            "request_id": request_id,
            "finish_reason": "maybe" if fault == "odd_reason" else reason,
            "metrics": metrics,
        }
    )


def _stream_head(request_id: str, seed: int, fault: str | None) -> bytes:
    kind = "text/plain" if fault == "wrong_content_type" else f"multipart/mixed; boundary={BOUNDARY}"
    return (
        f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nCache-Control: no-store\r\n"
        "X-Accel-Buffering: no\r\nTransfer-Encoding: chunked\r\n"
        f"X-Request-Id: {request_id}\r\nX-Qwen3-Seed: {seed}\r\n\r\n"
    ).encode()


def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


def _capabilities(slots: int) -> dict[str, Any]:
    return {
        "model": "fake",
        "model_kind": "voice_design",
        "voice_clone": False,
        "sample_rate_hz": 24_000,
        "channels": 1,
        "encoding": "pcm_s16le",
        "samples_per_codec_frame": SAMPLES,
        "max_codec_frames": 512,
        "max_concurrent_requests": slots,
        "max_text_bytes": 32_768,
        "max_voice_description_bytes": 4_096,
        "max_duration_seconds": 40.96,
        "languages": LANGUAGES,
        "streaming": "multipart/mixed",
    }


def _refusal(body: bytes) -> tuple[int, str] | None:
    try:
        request = json.loads(body)
    except ValueError:
        return 400, "malformed_json"
    known = {
        "text",
        "voice_description",
        "language",
        "seed",
        "max_duration_seconds",
        "sampling",
        "stream",
        "output_format",
    }
    if set(request) - known:
        return 400, "malformed_json"
    checks = {
        "invalid_text": not str(request.get("text", "")).strip(),
        "invalid_voice_description": not str(request.get("voice_description", "")).strip(),
        "unsupported_language": str(request.get("language", "auto")).lower() not in LANGUAGES,
        "invalid_seed": not 0 <= request.get("seed", 0) < 2**53,
        "invalid_max_duration": not 0.08 <= request.get("max_duration_seconds", 1) <= 40.96,
        "unsupported_response_format": (request.get("stream") is True) == (request.get("output_format") == "wav"),
        "invalid_sampling": request.get("sampling", {}).get("strategy") == "greedy"
        and "temperature" in request["sampling"],
    }
    return next(((422, code) for code, broken in checks.items() if broken), None)


def _problem(writer: asyncio.StreamWriter, status: int, code: str) -> None:
    document = {"type": f"urn:fake:{code}", "title": code, "status": status, "code": code, "detail": f"refused: {code}"}
    _respond(writer, status, "application/problem+json", json.dumps(document).encode(), {"Retry-After": "1"})


def _answer(writer: asyncio.StreamWriter, status: int, document: dict[str, Any]) -> None:
    _respond(writer, status, "application/json", json.dumps(document).encode(), {})


def _respond(writer: asyncio.StreamWriter, status: int, kind: str, body: bytes, extra: dict[str, str]) -> None:
    lines = [
        f"HTTP/1.1 {status} X",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        *(f"{k}: {v}" for k, v in extra.items()),
    ]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


@contextlib.contextmanager
def running(behaviour: Behaviour) -> Iterator[FakeServer]:
    """A fake server on a thread of its own, for tests that are not asynchronous."""
    server, loop, ready = FakeServer(behaviour), asyncio.new_event_loop(), threading.Event()

    async def main() -> None:
        async with server:
            ready.set()
            await stop.wait()

    stop = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    ready.wait(5)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(5)
        loop.close()


async def _main(options: argparse.Namespace) -> None:
    behaviour = Behaviour(
        fault=options.fault, slots=options.slots, die_after=options.die_after, frame_seconds=options.frame_seconds
    )
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, (lambda: None) if options.stubborn else stop.set)
    async with FakeServer(behaviour) as server:
        print(json.dumps({"event": "listening", "host": "127.0.0.1", "port": server.port}), flush=True)
        await stop.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--fault")
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--die-after", type=int)
    parser.add_argument("--stubborn", action="store_true", help="ignore SIGTERM")
    parser.add_argument("--frame-seconds", type=float, default=0.0)
    asyncio.run(_main(parser.parse_known_args()[0]))
