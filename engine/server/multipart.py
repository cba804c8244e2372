"""The progressive answer: `multipart/mixed` parts with CRLF line ends, a Content-Type and a Content-Length each.

A part ends with its CRLF in the same write, so a reader needs no look-ahead. Not covered: sending (`outlet`).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from uuid import UUID

from engine.contract import SAMPLE_RATE_HZ, SAMPLES_PER_FRAME, AudioPacket, SpeechEnd

AUDIO_TYPE = f"audio/pcm;rate={SAMPLE_RATE_HZ};channels=1;format=s16le"
CRLF = b"\r\n"


class MultipartWriter:
    """Bytes of one multipart answer, part by part."""

    def __init__(self, request_id: UUID, boundary: str | None = None) -> None:
        self.request_id = str(request_id)
        self.boundary = boundary or f"assay-{secrets.token_hex(16)}"

    @property
    def content_type(self) -> str:
        return f"multipart/mixed; boundary={self.boundary}"

    def start(self, *, model: str, seed: int) -> bytes:
        """The part that leaves before any audio exists."""
        audio = {
            "encoding": "pcm_s16le",
            "sample_rate_hz": SAMPLE_RATE_HZ,
            "channels": 1,
            "samples_per_codec_frame": SAMPLES_PER_FRAME,
        }
        return self._json(
            {"type": "start", "request_id": self.request_id, "model": model, "seed": seed, "audio": audio}
        )

    def audio(self, packet: AudioPacket) -> bytes:
        """One audio part; positions count from zero."""
        headers = {
            "Content-Type": AUDIO_TYPE,
            "X-Sequence": packet.sequence,
            "X-First-Codec-Frame": packet.first_frame,
            "X-First-Sample": packet.first_frame * SAMPLES_PER_FRAME,
            "X-Sample-Count": packet.samples,
            "X-Codec-Frames": packet.frames,
            "X-Final": "true" if packet.final else "false",
        }
        return self._part(headers, packet.pcm)

    def end(self, end: SpeechEnd) -> bytes:
        """The last part of a success, with the closing delimiter. What was not measured is null."""
        return self._closing(
            {
                "type": "end",
                "request_id": self.request_id,
                "finish_reason": end.reason.value,
                "metrics": asdict(end.metrics),
            }
        )

    def error(self, code: str, detail: str) -> bytes:
        """The last part of a failure after the start, with the closing delimiter."""
        error = {"code": code, "detail": detail}
        return self._closing({"type": "error", "request_id": self.request_id, "error": error})

    def _closing(self, document: Mapping[str, Any]) -> bytes:
        return self._json(document) + b"--" + self.boundary.encode() + b"--" + CRLF

    def _json(self, document: Mapping[str, Any]) -> bytes:
        return self._part({"Content-Type": "application/json"}, json.dumps(document, separators=(",", ":")).encode())

    def _part(self, headers: Mapping[str, object], body: bytes) -> bytes:
        lines = [f"--{self.boundary}", *(f"{name}: {value}" for name, value in headers.items())]
        lines += [f"Content-Length: {len(body)}", "", ""]
        return "\r\n".join(lines).encode("ascii") + body + CRLF
