"""Facts of one stored utterance, computed from its own samples.

The accepted WAV is the one that the harness writes: 44 bytes of header with exact sizes, PCM, mono, 24 kHz, 16 bits.
All sums are integers, so the figures are the same on every machine. Whether a voice says the right words is not
covered.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qualification.bench.raw import BYTES_PER_SAMPLE, SAMPLE_RATE_HZ
from qualification.bench.statistics import quantile
from qualification.digest import sha256_bytes
from qualification.errors import BundleError

FULL_SCALE = 32_768
CLIP_LEVEL = 32_767
WINDOW_SAMPLES = 480  # 20 ms
_HEADER = struct.Struct("<4sI4s4sIHHIIHH4sI")


@dataclass(frozen=True, kw_only=True)
class Clip:
    """Facts of one utterance; shares are of full scale (32,768).

    Attributes:
        samples: count; pcm_sha256: over the PCM bytes without header.
        clipped: samples at full scale; peak: largest magnitude; rms: root mean square.
        window_rms: root mean square of each whole 20 ms window, in order.
        window_crossings: changes of sign inside each of these windows.
    """

    samples: int
    pcm_sha256: str
    clipped: int
    peak: float
    rms: float
    window_rms: tuple[float, ...]
    window_crossings: tuple[int, ...]

    @property
    def seconds(self) -> float:
        return self.samples / SAMPLE_RATE_HZ

    @property
    def clipped_fraction(self) -> float:
        return self.clipped / self.samples

    def voiced_fraction(self, *, rms_min: float, crossings_min: float, crossings_max: float) -> float:
        """Share of 20 ms windows that are loud enough and change their sign as often as a voice does.

        `crossings_*` are changes of sign a sample: a constant has none, white noise one in two. 0 without a window.
        """
        if not self.window_rms:
            return 0.0
        rates = [crossings / WINDOW_SAMPLES for crossings in self.window_crossings]
        loud = zip(self.window_rms, rates, strict=True)
        voiced = sum(1 for rms, rate in loud if rms >= rms_min and crossings_min <= rate <= crossings_max)
        return voiced / len(self.window_rms)

    def varies(self, ratio: float) -> bool:
        """Whether loud windows (9th decile) are `ratio` times as loud as quiet ones (1st decile): syllables and pauses
        do that, a tone, a constant and steady noise do not."""
        if not self.window_rms:
            return False
        return quantile(self.window_rms, 0.9) >= ratio * quantile(self.window_rms, 0.1)


def encode_wav(pcm: bytes) -> bytes:
    """A WAV file of mono 24 kHz signed 16-bit PCM with exact sizes."""
    return wav_header(len(pcm)) + pcm


def wav_header(size: int) -> bytes:
    """The 44 bytes before `size` bytes of PCM."""
    return _HEADER.pack(
        b"RIFF", 36 + size, b"WAVE", b"fmt ", 16, 1, 1, SAMPLE_RATE_HZ, SAMPLE_RATE_HZ * BYTES_PER_SAMPLE,
        BYTES_PER_SAMPLE, 8 * BYTES_PER_SAMPLE, b"data", size,
    )  # fmt: skip


def parse_wav(data: bytes, name: str) -> Clip:
    """Read a WAV that `encode_wav` could have written.

    Raises:
        BundleError: for any other header, a wrong size, or no sample.
    """
    pcm = data[_HEADER.size :]
    if len(pcm) < BYTES_PER_SAMPLE or len(pcm) % BYTES_PER_SAMPLE or data[: _HEADER.size] != wav_header(len(pcm)):
        raise BundleError(f"{name}: not a mono 24 kHz 16-bit PCM WAV with exact sizes; store it with encode_wav")
    return facts(pcm)


def facts(pcm: bytes) -> Clip:
    """Facts of mono 24 kHz signed 16-bit little-endian PCM; at least one sample."""
    samples = np.frombuffer(pcm, dtype="<i2")  # [samples]
    whole = samples.size // WINDOW_SAMPLES * WINDOW_SAMPLES
    windows = samples[:whole].reshape(-1, WINDOW_SAMPLES)  # [windows, samples]
    energies = _energies(windows)
    total = sum(energies) + sum(_energies(samples[whole:].reshape(1, -1)))
    negative: npt.NDArray[np.bool_] = windows < 0
    crossings = np.count_nonzero(negative[:, 1:] != negative[:, :-1], axis=1)
    return Clip(
        samples=int(samples.size),
        pcm_sha256=sha256_bytes(pcm),
        clipped=int(np.count_nonzero(samples >= CLIP_LEVEL) + np.count_nonzero(samples <= -CLIP_LEVEL)),
        peak=max(int(samples.max()), -int(samples.min())) / FULL_SCALE,
        rms=_rms(total, samples.size),
        window_rms=tuple(_rms(energy, WINDOW_SAMPLES) for energy in energies),
        window_crossings=tuple(crossings.tolist()),
    )


def _energies(windows: npt.NDArray[np.int16]) -> list[int]:
    """Sum of squares of each row. In 64-bit floats, which hold every sum under 2^53 exactly, whatever the order."""
    values = windows.astype(np.float64)
    return [int(energy) for energy in np.einsum("ij,ij->i", values, values).tolist()]


def _rms(energy: int, count: int) -> float:
    return math.sqrt(energy / count) / FULL_SCALE
