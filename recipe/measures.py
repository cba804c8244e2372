"""What can be measured of one utterance without an opinion: length, level, speech, clipping, pitch. Plain numpy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.contract import SAMPLE_RATE_HZ

Samples = npt.NDArray[np.int16]

FRAME = SAMPLE_RATE_HZ // 50  # 20 ms
ACTIVE_RMS = 0.01  # of full scale, -40 dBFS
PITCH_FRAME, PITCH_HOP = SAMPLE_RATE_HZ // 20, SAMPLE_RATE_HZ // 100  # 50 ms every 10 ms
PITCH_LOW_HZ, PITCH_HIGH_HZ = 60, 450
NEAR_TOP = 0.9
ENOUGH_VOICED = 0.25  # of the loud frames; with fewer a median would be chance
PITCH_BAND_HZ = 2_000
VOICED = 0.5  # normalised autocorrelation above which a frame has a pitch
FULL_SCALE = 32_767


@dataclass(frozen=True, kw_only=True)
class Pitch:
    """`hertz` median of the voiced frames; None where less than a quarter of the loud frames is voiced.
    `voiced_share` of the loud frames."""

    hertz: float | None
    voiced_share: float


@dataclass(frozen=True, kw_only=True)
class Measures:
    """`speech_share` of 20 ms frames above -40 dBFS; `rms` of full scale; `clipped` samples at full scale; `pitch` as
    `Pitch`."""

    seconds: float
    speech_share: float
    rms: float
    clipped: int
    pitch: Pitch


def measure(samples: Samples) -> Measures:
    """Measure 24 kHz PCM. Empty audio has no speech and no level."""
    wave = samples.astype(np.float64) / FULL_SCALE
    frames = wave[: len(wave) // FRAME * FRAME].reshape(-1, FRAME)
    loud = np.sqrt(np.square(frames).mean(axis=1)) > ACTIVE_RMS
    return Measures(
        seconds=len(samples) / SAMPLE_RATE_HZ,
        speech_share=float(loud.mean()) if len(loud) else 0.0,
        rms=float(np.sqrt(np.square(wave).mean())) if len(wave) else 0.0,
        clipped=int(np.count_nonzero(np.abs(samples.astype(np.int32)) >= FULL_SCALE)),
        pitch=pitch(wave),
    )


def pitch(wave: npt.NDArray[np.float64]) -> Pitch:
    """Fundamental of the loud 50 ms frames: the first peak of the normalised autocorrelation between 60 and 450 Hz
    that comes near the
    highest (multiples of the period correlate as well as the period), of what is below 2 kHz (where harmonics stand
    clear of noise)."""
    starts = range(0, len(wave) - PITCH_FRAME + 1, PITCH_HOP)
    frames = np.stack([wave[start : start + PITCH_FRAME] for start in starts]) if starts else np.zeros((0, PITCH_FRAME))
    frames = frames[np.sqrt(np.square(frames).mean(axis=1)) > ACTIVE_RMS]
    if not len(frames):
        return Pitch(hertz=None, voiced_share=0.0)
    normal = _autocorrelation(frames - frames.mean(axis=1, keepdims=True))
    shortest, longest = SAMPLE_RATE_HZ // PITCH_HIGH_HZ, SAMPLE_RATE_HZ // PITCH_LOW_HZ
    window = normal[:, shortest : longest + 1]
    top, inner = window.max(axis=1), window[:, 1:-1]
    peak = (inner >= window[:, :-2]) & (inner >= window[:, 2:]) & (inner >= NEAR_TOP * top[:, None])
    voiced = (top > VOICED) & peak.any(axis=1)
    share = float(voiced.mean())
    if share < ENOUGH_VOICED:
        return Pitch(hertz=None, voiced_share=share)
    lags = shortest + 1 + peak.argmax(axis=1)
    return Pitch(hertz=float(np.median(SAMPLE_RATE_HZ / lags[voiced])), voiced_share=share)


def _autocorrelation(frames: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Normalised autocorrelation [N, PITCH_FRAME] of windowed frames below 2 kHz, the window's own taken out."""
    window = np.hanning(PITCH_FRAME)
    power = np.square(np.abs(np.fft.rfft(frames * window, 2 * PITCH_FRAME)))
    power[:, np.fft.rfftfreq(2 * PITCH_FRAME, 1 / SAMPLE_RATE_HZ) > PITCH_BAND_HZ] = 0.0
    correlation = np.fft.irfft(power)[:, :PITCH_FRAME]
    own = np.fft.irfft(np.square(np.abs(np.fft.rfft(window, 2 * PITCH_FRAME))))[:PITCH_FRAME]
    return np.asarray(correlation / np.maximum(correlation[:, :1], 1e-12) / np.maximum(own / own[0], 1e-3))
