"""A whole utterance as the wire's multipart stream, for engines that cannot stream: every part is sent at the end.

No torch here. Frames are cut as the wire wants them: one in the first part, at most four in each later one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

BOUNDARY: Final = "assay-buffered-8b1d4f"
SAMPLES_PER_FRAME: Final = 1_920
FRAME_BYTES: Final = SAMPLES_PER_FRAME * 2
AUDIO: Final = {
    "encoding": "pcm_s16le",
    "sample_rate_hz": 24_000,
    "channels": 1,
    "samples_per_codec_frame": SAMPLES_PER_FRAME,
}


def stream_body(*, request_id: str, model: str, seed: int, pcm: bytes, ended: bool, wall_microseconds: int) -> bytes:
    """The body of a successful answer; `pcm` is whole frames, at least one.

    Raises:
        ValueError: no audio, or a part of a frame.
    """
    if not pcm or len(pcm) % FRAME_BYTES:
        raise ValueError(f"{len(pcm)} bytes are no whole number of codec frames, at least one")
    cuts = list(_cuts(len(pcm) // FRAME_BYTES))
    start = {"type": "start", "request_id": request_id, "model": model, "seed": seed, "audio": AUDIO}
    parts = [json_part(start)]
    for number, (first, count) in enumerate(cuts):
        content = pcm[first * FRAME_BYTES : (first + count) * FRAME_BYTES]
        parts.append(audio_part(content, number=number, first=first, final=number == len(cuts) - 1))
    end = {
        "type": "end",
        "request_id": request_id,
        "finish_reason": "stop" if ended else "length",
        "metrics": _metrics(len(pcm), len(cuts), wall_microseconds),
    }
    return b"".join([*parts, json_part(end), f"--{BOUNDARY}--\r\n".encode()])


def _cuts(frames: int) -> Iterator[tuple[int, int]]:
    yield 0, 1
    for first in range(1, frames, 4):
        yield first, min(4, frames - first)


def audio_part(content: bytes, *, number: int, first: int, final: bool | None) -> bytes:
    """Part `number` with whole frames from `first` on; `final` None: nobody knows yet, and nothing is said."""
    count = len(content) // FRAME_BYTES
    place = {
        "X-Sequence": str(number),
        "X-First-Codec-Frame": str(first),
        "X-First-Sample": str(first * SAMPLES_PER_FRAME),
        "X-Sample-Count": str(count * SAMPLES_PER_FRAME),
        "X-Codec-Frames": str(count),
    }
    told = {} if final is None else {"X-Final": "true" if final else "false"}
    return _part("audio/pcm;rate=24000;channels=1;format=s16le", content, place | told)


def _metrics(size: int, packets: int, wall_microseconds: int) -> dict[str, int | None]:
    """What is known of a buffered utterance; null is what nobody measured."""
    unknown = (
        "queue", "prefill", "first_codec_frame", "talker_gpu", "codec_gpu",
    )  # fmt: skip
    return {
        **{f"{name}_microseconds": None for name in unknown},
        "first_audio_microseconds": wall_microseconds,
        "wall_microseconds": wall_microseconds,
        "generated_codec_frames": size // FRAME_BYTES,
        "emitted_samples": size // 2,
        "emitted_packets": packets,
        "peak_request_device_bytes": None,
        "peak_request_host_bytes": None,
    }


def json_part(document: Mapping[str, Any]) -> bytes:
    """A part with a JSON document."""
    return _part("application/json", json.dumps(document, sort_keys=True).encode(), {})


def _part(kind: str, content: bytes, more: Mapping[str, str]) -> bytes:
    headers = {"Content-Type": kind, "Content-Length": str(len(content)), **more}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"--{BOUNDARY}\r\n{lines}\r\n".encode() + content + b"\r\n"
