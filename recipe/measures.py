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
VOICED = 0.5  # normalised autocorrelation above which a frame has a pitch
FULL_SCALE = 32_767


@dataclass(frozen=True, kw_only=True)
class Measures:
    """`speech_share` of 20 ms frames above -40 dBFS; `rms` of full scale; `clipped` samples at full scale; `pitch_hz`
    median of the voiced
    frames, None where none is voiced."""

    seconds: float
    speech_share: float
    rms: float
    clipped: int
    pitch_hz: float | None


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
        pitch_hz=median_pitch(wave),
    )


def median_pitch(wave: npt.NDArray[np.float64]) -> float | None:
    """Median fundamental of the voiced 50 ms frames, by the peak of the normalised autocorrelation between 60 and 450
    Hz."""
    starts = range(0, len(wave) - PITCH_FRAME + 1, PITCH_HOP)
    if not len(starts):
        return None
    frames = np.stack([wave[start : start + PITCH_FRAME] for start in starts])
    frames = frames[np.sqrt(np.square(frames).mean(axis=1)) > ACTIVE_RMS]
    if not len(frames):
        return None
    frames = frames - frames.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(frames, 2 * PITCH_FRAME)
    correlation = np.fft.irfft(np.square(np.abs(spectrum)))[:, :PITCH_FRAME]
    shortest, longest = SAMPLE_RATE_HZ // PITCH_HIGH_HZ, SAMPLE_RATE_HZ // PITCH_LOW_HZ
    overlap = 1.0 - np.arange(PITCH_FRAME) / PITCH_FRAME  # fewer products at long lags
    normal = correlation / overlap / np.maximum(correlation[:, :1], 1e-12)
    window = normal[:, shortest : longest + 1]
    top = window.max(axis=1)
    voiced = top > VOICED
    # Multiples of the period correlate as well as the period: take the first peak that comes near the highest.
    inner = window[:, 1:-1]
    peak = (inner >= window[:, :-2]) & (inner >= window[:, 2:]) & (inner >= NEAR_TOP * top[:, None])
    best = 1 + peak.argmax(axis=1)
    voiced &= peak.any(axis=1)
    if not voiced.any():
        return None
    return float(np.median(SAMPLE_RATE_HZ / (shortest + best[voiced])))
