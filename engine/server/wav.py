"""RIFF WAVE around finished PCM, every size exact. Not covered: streams, whose length is unknown at the start."""

from __future__ import annotations

import struct

from engine.contract import SAMPLE_RATE_HZ

HEADER_BYTES = 44
SAMPLE_BYTES = 2


def header(pcm_bytes: int) -> bytes:
    """The 44-byte header of a 16-bit mono file at 24 kHz with `pcm_bytes` of samples (always even)."""
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        HEADER_BYTES - 8 + pcm_bytes,
        b"WAVE",
        b"fmt ",
        16,  # bytes of the format chunk
        1,  # PCM
        1,  # channels
        SAMPLE_RATE_HZ,
        SAMPLE_RATE_HZ * SAMPLE_BYTES,  # bytes a second
        SAMPLE_BYTES,  # bytes a sample frame
        8 * SAMPLE_BYTES,  # bits a sample
        b"data",
        pcm_bytes,
    )
