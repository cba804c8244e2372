"""Does an utterance repeat itself? Spectral self-similarity over every lag of at least 0.3 s.

Each 10 ms the spectrum of 30 ms is reduced to logarithmic bands, freed of the utterance's mean and scaled to length one;
quiet frames are zero. The similarity of two stretches is the mean product of their frames, over those that are loud in
either: 1 for a copy, in whatever place of the sample grid, about 0.5 for different words of one voice. A voice that is
stuck on one sound is similar to itself at every lag and is found too. Not told apart from a fault: words that the text
itself repeats for 0.6 s and more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qualification.bench.raw import SAMPLE_RATE_HZ
from qualification.clip import FULL_SCALE

HOP: Final = 240  # 10 ms
FRAME: Final = 720  # 30 ms
STRETCH: Final = 60  # frames: 0.6 s, the shortest repetition that is told apart
LEAST_LAG: Final = 30  # frames: 0.3 s
MOST_LAG: Final = 2_000  # frames: 20 s
QUIET_RMS: Final = 0.01
LEAST_LOUD: Final = 36  # frames of a stretch: with fewer, silence would decide
_POINTS: Final = 1_024
_BANDS: Final = 33
_TOP_HZ: Final = 8_000
_FLOOR: Final = 1e-7
_DIGITS: Final = 6  # scores are compared rounded, so that ties fall the same way on every machine
Array = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Repetition:
    """The two most similar stretches of 0.6 s: `similarity` at most 1, `first` and `lag` in seconds."""

    similarity: float
    first: float
    lag: float


def strongest(pcm: npt.NDArray[np.int16]) -> Repetition | None:
    """The strongest repetition in [samples] at 24 kHz; None for less than 0.9 s, in which none can be told."""
    frames, loud = _frames(pcm)
    best: tuple[float, int, int] | None = None
    for lag in range(LEAST_LAG, min(len(frames) - STRETCH, MOST_LAG) + 1):
        products = np.einsum("fb,fb->f", frames[lag:], frames[:-lag])
        counts = np.maximum(_over_stretches(loud[lag:] | loud[:-lag]), LEAST_LOUD)
        scores = np.round(_over_stretches(products) / counts, _DIGITS)
        at = int(scores.argmax())
        if best is None or scores[at] > best[0]:
            best = (float(scores[at]), at, lag)
    if best is None:
        return None
    seconds = HOP / SAMPLE_RATE_HZ
    return Repetition(similarity=best[0], first=best[1] * seconds, lag=best[2] * seconds)


def _over_stretches(values: npt.NDArray[Any]) -> Array:
    """Sums over every stretch."""
    sums = np.concatenate(([0.0], np.cumsum(values, dtype=np.float64)))
    return sums[STRETCH:] - sums[:-STRETCH]


def _frames(pcm: npt.NDArray[np.int16]) -> tuple[Array, npt.NDArray[np.bool_]]:
    """[frames, bands] of length one, or zero where it is quiet; and which of them are loud."""
    if pcm.size < FRAME:
        return np.empty((0, _BANDS)), np.empty(0, dtype=np.bool_)
    wave = pcm.astype(np.float64) / FULL_SCALE
    windows = np.lib.stride_tricks.sliding_window_view(wave, FRAME)[::HOP]
    loud = np.sqrt(np.square(windows).mean(axis=1)) >= QUIET_RMS
    power = np.square(np.abs(np.fft.rfft(windows * np.hanning(FRAME), _POINTS)))
    edges = _edges()
    bands = np.log(np.add.reduceat(power[:, : edges[-1]], edges[:-1], axis=1) + _FLOOR)
    if loud.any():
        bands -= bands[loud].mean(axis=0)
    bands /= np.maximum(np.linalg.norm(bands, axis=1, keepdims=True), 1e-9)
    bands[~loud] = 0.0
    return bands, loud


def _edges() -> npt.NDArray[np.int64]:
    """Borders of the bands in points of the spectrum, evenly spaced as pitch is heard."""
    top = 2_595 * np.log10(1 + _TOP_HZ / 700)
    hertz = 700 * (10 ** (np.linspace(0, top, _BANDS + 1) / 2_595) - 1)
    return np.unique(np.round(hertz / (SAMPLE_RATE_HZ / _POINTS)).astype(np.int64))
