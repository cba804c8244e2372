"""Audio formats of the OpenAI-shaped endpoint: PCM as it is, MP3, Opus and FLAC by libsndfile, packet by packet.

libsndfile writes to a tape. What it appends can leave at once; at the end it rewrites sizes in the header (FLAC, MP3),
which a stream cannot take back and decoders do not need: a streamed FLAC says "length unknown", as its
format allows, but since some readers insist on a length it is streamed on request only.
libsndfile is looked for when the first format is asked about; without it PCM and WAV remain.
Not covered: WAV streams, whose header must state the length; `wav` writes finished files. AAC: libsndfile has none.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from engine.contract import SAMPLE_RATE_HZ
from engine.server import wav
from engine.server.multipart import AUDIO_TYPE


@dataclass(frozen=True, kw_only=True)
class Format:
    """A response format; `container` and `subtype` are libsndfile's names, None for what needs no encoder.

    `streams`: it can leave as it is made. `unasked`: it does so without being told to.
    """

    media_type: str
    container: str | None = None
    subtype: str | None = None
    streams: bool = True
    unasked: bool = True


FORMATS: Mapping[str, Format] = {
    "pcm": Format(media_type=AUDIO_TYPE),
    "wav": Format(media_type="audio/wav", streams=False, unasked=False),
    "mp3": Format(media_type="audio/mpeg", container="MP3", subtype="MPEG_LAYER_III"),
    "opus": Format(media_type="audio/ogg; codecs=opus", container="OGG", subtype="OPUS"),
    "flac": Format(media_type="audio/flac", container="FLAC", subtype="PCM_16", unasked=False),
}


# A constant rate (112 kbit/s at 24 kHz) lets players tell the length of a streamed MP3 from its size.
_OPTIONS: Mapping[str | None, dict[str, Any]] = {"MP3": {"bitrate_mode": "CONSTANT", "compression_level": 0.3}}


@functools.cache
def available() -> Mapping[str, Format]:
    """The formats that this installation can write: those of libsndfile only where it is there and knows them."""
    try:
        import soundfile  # not on every machine, and PCM needs none of it
    except (ImportError, OSError):  # the package, or the library behind it
        return {name: form for name, form in FORMATS.items() if form.container is None}
    return {
        name: form
        for name, form in FORMATS.items()
        if form.container is None or soundfile.check_format(form.container, form.subtype)
    }


class Encoder(Protocol):
    """Turns PCM packets into bytes of a format, in order."""

    def feed(self, pcm: bytes) -> bytes:
        """Bytes that can leave after this packet; maybe none yet."""
        ...

    def finish(self) -> bytes:
        """The remaining bytes."""
        ...


def make_encoder(form: Format) -> Encoder:
    """An encoder for a format that streams."""
    return _Sound(form) if form.container else _Plain()


def encode_whole(form: Format, pcm: bytes) -> bytes:
    """A finished file, its header exact."""
    if form.container is None:
        return pcm if form.streams else wav.header(len(pcm)) + pcm
    encoder = _Sound(form)
    encoder.feed(pcm)
    encoder.finish()
    return encoder.file()


class _Plain:
    def feed(self, pcm: bytes) -> bytes:
        return pcm

    def finish(self) -> bytes:
        return b""


class _Sound:
    def __init__(self, form: Format) -> None:
        import soundfile

        self._tape = _Tape()
        self._sound = soundfile.SoundFile(
            self._tape,
            "w",
            SAMPLE_RATE_HZ,
            1,
            format=form.container,
            subtype=form.subtype,
            **_OPTIONS.get(form.container, {}),
        )

    def feed(self, pcm: bytes) -> bytes:
        self._sound.buffer_write(pcm, dtype="int16")
        return self._tape.appended()

    def finish(self) -> bytes:
        self._sound.close()
        return self._tape.appended()

    def file(self) -> bytes:
        return self._tape.getvalue()


class _Tape(io.BytesIO):
    """A file in memory that remembers how much of it has been handed out, as first written."""

    def __init__(self) -> None:
        super().__init__()
        self._first = bytearray()  # appended and not handed out
        self._length = 0

    def write(self, data: Any, /) -> int:
        view = bytes(data)
        overlap = max(0, self._length - self.tell())
        self._first += view[overlap:]
        self._length += len(view[overlap:])
        return super().write(view)

    def appended(self) -> bytes:
        found = bytes(self._first)
        self._first.clear()
        return found
