"""A second, tolerant reader of WAV files: what a file says of itself, what it holds, and every difference.

`clip.parse_wav` accepts one form and refuses the rest; a review has to say what is wrong and go on. Integer PCM of 16
bits and floats of 32 and 64 bits are read; of anything else only the header is told. Wave-extensible files are named as
a fault, because a stored utterance never needs them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from qualification.bench.raw import BYTES_PER_SAMPLE, SAMPLE_RATE_HZ
from qualification.clip import FULL_SCALE

PCM: Final = 1
FLOAT: Final = 3
_FORMAT: Final = struct.Struct("<HHIIHH")
_TYPES: Final = {(PCM, 16): "<i2", (FLOAT, 32): "<f4", (FLOAT, 64): "<f8"}
_HEADER_BYTES: Final = 44


@dataclass(frozen=True, kw_only=True)
class Wave:
    """One file as found.

    Attributes:
        faults: every way in which it is not a mono 24 kHz 16-bit PCM WAV with exact sizes; empty for an exact one.
        rate_hz, channels, bits: of the header; 0 where there is none.
        data: the bytes of the data chunk that are there.
        samples: [samples x channels] in full scales, 0 long where the coding is not known.
    """

    faults: tuple[str, ...]
    rate_hz: int
    channels: int
    bits: int
    data: bytes
    samples: npt.NDArray[np.float64]

    @property
    def non_finite(self) -> int:
        """Samples that are no numbers or infinite. Integers cannot be."""
        return int(np.count_nonzero(~np.isfinite(self.samples)))

    @property
    def pcm(self) -> npt.NDArray[np.int16] | None:
        """[samples] where they are mono 16-bit PCM at 24 kHz and at least one, whatever the sizes say; else None."""
        if (self.rate_hz, self.channels, self.bits) != (SAMPLE_RATE_HZ, 1, 16) or not self.samples.size:
            return None
        return np.frombuffer(self.data[: self.samples.size * BYTES_PER_SAMPLE], dtype="<i2")


def read_wave(content: bytes) -> Wave:
    """Read a file; never raises for what it holds."""
    chunks = dict(_chunks(content))
    declared = chunks.get(b"fmt ", (0, b""))[1]
    known = len(declared) >= _FORMAT.size
    coding, channels, rate, _, _, bits = _FORMAT.unpack(declared[: _FORMAT.size]) if known else (0,) * 6
    size, data = chunks.get(b"data", (0, b""))
    return Wave(
        faults=tuple(_faults(content, coding, channels, rate, bits, size, data)),
        rate_hz=rate,
        channels=channels,
        bits=bits,
        data=data,
        samples=_samples(data, coding, bits),
    )


def _chunks(content: bytes) -> Iterator[tuple[bytes, tuple[int, bytes]]]:
    """Name -> declared size and the bytes that are there; the first chunk of a name wins."""
    seen: set[bytes] = set()
    at = 12
    while at + 8 <= len(content) and content[:4] == b"RIFF" and content[8:12] == b"WAVE":
        name, size = content[at : at + 4], int.from_bytes(content[at + 4 : at + 8], "little")
        if name not in seen:
            yield name, (size, content[at + 8 : at + 8 + size])
        seen.add(name)
        at += 8 + size + size % 2


def _samples(data: bytes, coding: int, bits: int) -> npt.NDArray[np.float64]:
    kind = _TYPES.get((coding, bits))
    if kind is None:
        return np.empty(0)
    width = bits // 8
    values = np.frombuffer(data[: len(data) // width * width], dtype=kind).astype(np.float64)
    return values / FULL_SCALE if coding == PCM else values


def _faults(content: bytes, coding: int, channels: int, rate: int, bits: int, size: int, data: bytes) -> Iterator[str]:
    if content[:4] != b"RIFF" or content[8:12] != b"WAVE":
        yield "no RIFF/WAVE file"
        return
    said = int.from_bytes(content[4:8], "little")
    if said != len(content) - 8:
        yield f"the RIFF size says {said} bytes, {len(content) - 8} follow"
    if coding != PCM:
        yield f"coding {coding}, expected {PCM} (PCM)"
    for name, found, expected in (("channels", channels, 1), ("rate", rate, SAMPLE_RATE_HZ), ("bits", bits, 16)):
        if found != expected:
            yield f"{name} {found}, expected {expected}"
    if size != len(data):
        yield f"the data size says {size} bytes, {len(data)} are there"
    if not data or len(data) % BYTES_PER_SAMPLE:
        yield f"{len(data)} bytes of data are no whole number of samples"
    if len(content) != _HEADER_BYTES + len(data):
        yield f"{len(content) - len(data)} bytes beside the samples, expected {_HEADER_BYTES}"
