"""Judges the parts of one speech response against the wire contract.

Takes parts from `multipart` in order and keeps what a raw record needs. The first violation ends it: a stream that
broke a rule once proves nothing afterwards. Not covered: whether the samples sound like speech (a gate), and HTTP
itself (`client`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from qualification.bench.multipart import Part, StreamViolation
from qualification.bench.raw import BYTES_PER_SAMPLE, SAMPLE_RATE_HZ, SAMPLES_PER_FRAME, Packet, ServerMetrics
from qualification.errors import StrictJsonError
from qualification.strictjson import loads

MAX_LATER_FRAMES = 4
FINISH_REASONS = ("stop", "length")
_AUDIO = {"encoding": "pcm_s16le", "sample_rate_hz": SAMPLE_RATE_HZ, "channels": 1,
          "samples_per_codec_frame": SAMPLES_PER_FRAME}  # fmt: skip
_AUDIO_TYPE = "audio/pcm;rate=24000;channels=1;format=s16le"
_COUNT = re.compile(r"0|[1-9][0-9]{0,14}")
_CODE = re.compile(r"[a-z][a-z0-9_]{0,63}")


class ServerReportedError(StreamViolation):
    """The stream ended with the server's own error part; `code` is the server's."""


class SpeechStream:
    """Accumulates one response: start, audio parts, end. `packets` and `pcm` stay readable after a violation.

    `seed` None: the subject takes none, so it must echo none. `ends_open`: the subject, an adapter, learns neither how
    speech ended nor, while it goes on, that a packet is the last; a reason of null is then an end that nobody knows.
    """

    def __init__(self, *, request_id: str, seed: int | None, max_frames: int, ends_open: bool = False) -> None:
        self._request_id = request_id
        self._seed = seed
        self._max_frames = max_frames
        self._ends_open = ends_open
        self._started = False
        self._ended = False
        self._digest = hashlib.sha256()
        self._frames = 0
        self.packets: list[Packet] = []
        self.pcm = bytearray()
        self.model: str | None = None
        self.echoed_seed: int | None = None
        self.finish_reason: str | None = None
        self.metrics: ServerMetrics | None = None

    @property
    def samples(self) -> int:
        return self._frames * SAMPLES_PER_FRAME

    @property
    def pcm_sha256(self) -> str:
        return self._digest.hexdigest()

    def accept(self, part: Part) -> None:
        """Take the next part.

        Raises:
            ServerReportedError: the part is the server's error part.
            StreamViolation: the part breaks a rule, or has no business here.
        """
        if self._ended:
            raise StreamViolation("part_after_end", "another part follows the end part")
        if not self._started:
            self._accept_start(part)
        elif part.headers.get("content-type", "").startswith("audio/"):
            self._accept_audio(part)
        else:
            self._accept_end(part)

    def finish(self) -> None:
        """Declare the body complete.

        Raises:
            StreamViolation: `missing_start` or `missing_end`.
        """
        if not self._started:
            raise StreamViolation("missing_start", "the stream has no start part")
        if not self._ended:
            raise StreamViolation("missing_end", f"the stream stopped after {len(self.packets)} audio parts")

    def _accept_start(self, part: Part) -> None:
        document = _json_part(part)
        kind = document.get("type")
        if kind == "error":
            raise _reported(document)
        if kind != "start":
            raise StreamViolation("missing_start", f"the first part has type {kind!r}")
        self._check_request_id(document)
        model, seed = document.get("model"), document.get("seed")
        if not isinstance(model, str) or not model:
            raise StreamViolation("bad_start", f"model is {model!r}")
        self.echoed_seed = seed if type(seed) is int else None
        if self.echoed_seed != self._seed:
            raise StreamViolation("seed_not_echoed", f"sent seed {self._seed}, start part has {seed!r}")
        if document.get("audio") != _AUDIO:
            raise StreamViolation("bad_audio_format", f"start part declares {document.get('audio')!r}")
        self.model = model
        self._started = True

    def _accept_audio(self, part: Part) -> None:
        if "".join(part.headers["content-type"].split()).lower() != _AUDIO_TYPE:
            raise StreamViolation("bad_audio_format", f"audio part has type {part.headers['content-type']!r}")
        packet = _packet(part, ends_open=self._ends_open)
        self._check_position(packet)
        self._check_size(packet)
        self.packets.append(packet)
        self._frames += packet.frames
        self._digest.update(part.body)
        self.pcm += part.body

    def _check_position(self, packet: Packet) -> None:
        if self.packets and self.packets[-1].final:
            raise StreamViolation("packet_after_final", f"packet {packet.sequence} follows the final packet")
        expected = (len(self.packets), self._frames, self.samples)
        found = (packet.sequence, packet.first_frame, packet.first_sample)
        if found != expected:
            raise StreamViolation("position_gap", f"sequence, frame, sample are {found}, expected {expected}")

    def _check_size(self, packet: Packet) -> None:
        if packet.samples != packet.frames * SAMPLES_PER_FRAME or packet.bytes != packet.samples * BYTES_PER_SAMPLE:
            detail = f"{packet.frames} frames, {packet.samples} samples, {packet.bytes} bytes"
            raise StreamViolation("size_mismatch", f"packet {packet.sequence} has {detail}")
        if packet.sequence == 0 and packet.frames != 1:
            raise StreamViolation("first_packet_size", f"the first packet has {packet.frames} frames, not 1")
        if not 1 <= packet.frames <= MAX_LATER_FRAMES:
            raise StreamViolation("packet_size", f"packet {packet.sequence} has {packet.frames} frames")
        if self._frames + packet.frames > self._max_frames:
            raise StreamViolation("over_the_ceiling", f"more than the {self._max_frames} frames that were asked for")

    def _accept_end(self, part: Part) -> None:
        document = _json_part(part)
        kind = document.get("type")
        if kind == "error":
            raise _reported(document)
        if kind != "end":
            raise StreamViolation("bad_end", f"expected an end part, got type {kind!r}")
        self._check_request_id(document)
        if not self.packets:
            raise StreamViolation("no_audio", "the stream ended without an audio part")
        if self._ends_open:
            self.packets[-1] = replace(self.packets[-1], final=True)  # known now: the end part follows it
        if not self.packets[-1].final:
            raise StreamViolation("no_final_packet", "the last audio part is not marked final")
        reason = document.get("finish_reason")
        if reason not in FINISH_REASONS and not (self._ends_open and reason is None):
            raise StreamViolation("bad_end", f"finish_reason is {reason!r}")
        self.metrics = self._checked_metrics(document.get("metrics"))
        self.finish_reason = reason
        self._ended = True

    def _checked_metrics(self, raw: object) -> ServerMetrics:
        if not isinstance(raw, Mapping):
            raise StreamViolation("bad_end", "the end part has no metrics object")
        values = {field.name: raw.get(field.name) for field in fields(ServerMetrics)}
        for name, value in values.items():
            if value is not None and (type(value) is not int or value < 0):
                raise StreamViolation("bad_metrics", f"{name} is {value!r}, not a count")
        metrics = ServerMetrics(**values)
        if (metrics.emitted_samples, metrics.emitted_packets) != (self.samples, len(self.packets)):
            found = f"{metrics.emitted_samples} samples in {metrics.emitted_packets} packets"
            raise StreamViolation(
                "metrics_mismatch", f"server counts {found}, received {self.samples} in {len(self.packets)}"
            )
        return metrics

    def _check_request_id(self, document: Mapping[str, Any]) -> None:
        if document.get("request_id") != self._request_id:
            found = document.get("request_id")
            raise StreamViolation("wrong_request_id", f"sent {self._request_id}, {document['type']} part has {found!r}")


def error_code(value: object, fallback: str) -> str:
    """A code fit for a record: the server's own where it is a plain snake_case word, else `fallback`."""
    return value if isinstance(value, str) and _CODE.fullmatch(value) else fallback


def _json_part(part: Part) -> Mapping[str, Any]:
    media = part.headers.get("content-type", "").split(";")[0].strip().lower()
    if media != "application/json":
        raise StreamViolation("unexpected_part", f"expected a JSON part, got {part.headers.get('content-type')!r}")
    try:
        document = loads(part.body, "JSON part")
    except StrictJsonError as error:
        raise StreamViolation("bad_json", str(error)) from error
    if not isinstance(document, Mapping):
        raise StreamViolation("bad_json", "JSON part is not an object")
    return document


def _packet(part: Part, *, ends_open: bool) -> Packet:
    final = part.headers.get("x-final")
    if final not in ("true", "false") and not (ends_open and final is None):
        raise StreamViolation("bad_part_header", f"X-Final is {final!r}")
    return Packet(
        at_ns=part.first_byte_ns,
        sequence=_count(part, "x-sequence"),
        first_frame=_count(part, "x-first-codec-frame"),
        first_sample=_count(part, "x-first-sample"),
        frames=_count(part, "x-codec-frames"),
        samples=_count(part, "x-sample-count"),
        bytes=len(part.body),
        final=final == "true",
    )


def _count(part: Part, name: str) -> int:
    text = part.headers.get(name)
    if text is None or _COUNT.fullmatch(text) is None:
        raise StreamViolation("bad_part_header", f"{name} is {text!r}")
    return int(text)


def _reported(document: Mapping[str, Any]) -> ServerReportedError:
    error = document.get("error")
    fields = error if isinstance(error, Mapping) else {}
    return ServerReportedError(error_code(fields.get("code"), "unnamed_error"), str(fields.get("detail", ""))[:500])
