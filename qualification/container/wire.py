"""The little of the wire that the container's drills need: health, capabilities, and streams that are watched.

Measuring belongs to `bench`; here it only matters whether something answers, how soon, and how a stream ends.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

SPEECH = "/v1/voice-design/speech"
LONG_TEXT = (
    "This sentence is read aloud for as long as the engine is watched, and then once more from the beginning. " * 6
)
SHORT_TEXT = "One short sentence."
DESCRIPTION = "A calm adult voice with clear diction."
_AUDIO = b"audio/pcm"
_TAIL_BYTES = 8_192


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A status (None: nobody answered), its time in seconds, and the JSON object where there was one."""

    status: int | None
    seconds: float
    document: Mapping[str, Any] | None = None


def get(url: str, *, timeout: float = 2.0) -> Answer:
    """GET with a fresh connection; never raises for a silent peer."""
    return _asked("GET", url, None, timeout)


def speak(base: str, text: str = SHORT_TEXT, *, seconds: float = 2.0, timeout: float = 30.0) -> Answer:
    """A whole speech request; only its status matters."""
    return _asked("POST", base + SPEECH, body(text, seconds), timeout)


def body(text: str, seconds: float) -> dict[str, Any]:
    """A speech request that streams."""
    return {
        "text": text,
        "voice_description": DESCRIPTION,
        "language": "english",
        "seed": 7,
        "max_duration_seconds": seconds,
    }


def _asked(method: str, url: str, content: object, timeout: float) -> Answer:
    start = time.monotonic()
    try:
        answer = httpx.request(method, url, json=content, timeout=timeout, trust_env=False)
    except httpx.HTTPError:
        return Answer(status=None, seconds=time.monotonic() - start)
    return Answer(status=answer.status_code, seconds=time.monotonic() - start, document=_object(answer))


def _object(answer: httpx.Response) -> Mapping[str, Any] | None:
    try:
        document = answer.json()
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


class WatchedStream:
    """A speech stream read in its own thread. `end` says how it ended: end, error, refused, broken or abandoned."""

    def __init__(self, base: str, *, seconds: float = 30.0) -> None:
        self.audio = threading.Event()
        self.status: int | None = None
        self.end: str | None = None
        self._leave = threading.Event()
        self._thread = threading.Thread(
            target=self._read, args=(base, body(LONG_TEXT, seconds)), daemon=True, name="watched-stream"
        )
        self._thread.start()

    def wait_audio(self, timeout: float) -> bool:
        """Whether audio came within `timeout` seconds."""
        return self.audio.wait(timeout)

    def leave(self) -> None:
        """Close the connection at the next piece of the stream."""
        self._leave.set()

    def join(self, timeout: float) -> str | None:
        """How the stream ended; None where it has not within `timeout` seconds."""
        self._thread.join(timeout)
        return self.end

    def _read(self, base: str, content: Mapping[str, Any]) -> None:
        try:
            with httpx.stream("POST", base + SPEECH, json=content, timeout=60.0, trust_env=False) as answer:
                self.status = answer.status_code
                self.end = self._follow(answer) if answer.status_code == 200 else "refused"
        except httpx.HTTPError:
            self.end = "broken"

    def _follow(self, answer: httpx.Response) -> str:
        tail = b""
        for piece in answer.iter_raw():
            tail = (tail + piece)[-_TAIL_BYTES:]
            if _AUDIO in tail:
                self.audio.set()
            if self._leave.is_set():
                return "abandoned"
        return ending(tail)


def ending(tail: bytes) -> str:
    """How a multipart stream ended, from its last bytes: `end` or `error` for that part, else `broken`."""
    start = tail.rfind(b"{")
    while start >= 0:
        try:
            document, _ = json.JSONDecoder().raw_decode(tail[start:].decode("utf-8", "replace"))
        except ValueError:
            document = None
        if isinstance(document, dict) and document.get("type") in ("end", "error"):
            return str(document["type"])
        start = tail.rfind(b"{", 0, start)
    return "broken"
