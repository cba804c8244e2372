"""Level, clipping, offset and silence of one utterance. Integers as far as possible, so every machine finds the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from qualification.bench.raw import SAMPLE_RATE_HZ
from qualification.clip import CLIP_LEVEL, FULL_SCALE, WINDOW_SAMPLES, Clip
from qualification.clip import facts as clip_facts

WINDOW_SECONDS = WINDOW_SAMPLES / SAMPLE_RATE_HZ


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Figures of one utterance; levels are shares of full scale, times are seconds.

    Attributes:
        clipped_run: longest run of samples at full scale; a lone one is a peak, a run is a flattened wave.
        offset: mean of the samples, signed.
        leading_silence, trailing_silence, longest_pause: in whole 20 ms windows below the level of silence; an utterance
            without any louder window is silent throughout: leading is its whole length, the others are 0.
    """

    samples: int
    pcm_sha256: str
    peak: float
    clipped: int
    clipped_run: int
    offset: float
    leading_silence: float
    trailing_silence: float
    longest_pause: float

    @property
    def seconds(self) -> float:
        return self.samples / SAMPLE_RATE_HZ

    @property
    def spoken_seconds(self) -> float:
        """Without the silence at both ends; 0 for a silent utterance."""
        return max(0.0, self.seconds - self.leading_silence - self.trailing_silence)


def measure(pcm: npt.NDArray[np.int16], silence_rms: float) -> Facts:
    """Figures of [samples] at 24 kHz; a 20 ms window with a root mean square below `silence_rms` is silent."""
    clip = clip_facts(pcm.astype("<i2").tobytes())
    leading, trailing, pause = _silence(clip, silence_rms)
    return Facts(
        samples=clip.samples,
        pcm_sha256=clip.pcm_sha256,
        peak=clip.peak,
        clipped=clip.clipped,
        clipped_run=_longest_run((np.abs(pcm.astype(np.int32)) >= CLIP_LEVEL).tolist()),
        offset=int(pcm.sum(dtype=np.int64)) / clip.samples / FULL_SCALE,
        leading_silence=leading,
        trailing_silence=trailing,
        longest_pause=pause,
    )


def _silence(clip: Clip, silence_rms: float) -> tuple[float, float, float]:
    silent = [rms < silence_rms for rms in clip.window_rms]
    if all(silent):
        return clip.seconds, 0.0, 0.0
    first, last = silent.index(False), len(silent) - 1 - silent[::-1].index(False)
    pause = _longest_run(silent[first : last + 1])
    return first * WINDOW_SECONDS, (len(silent) - 1 - last) * WINDOW_SECONDS, pause * WINDOW_SECONDS


def _longest_run(flags: Sequence[bool]) -> int:
    """Length of the longest stretch of True."""
    return max((sum(1 for _ in group) for value, group in groupby(flags) if value), default=0)
