"""Voice activity by Silero's model: where somebody speaks, in steps of 32 ms.

It was trained on people in many languages; that it hears a voice says nothing of words or of quality.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from qualification.audio_review import models
from qualification.audio_review.models import FoundModel, Wave

STEP: Final = 512  # samples at 16 kHz
CONTEXT: Final = 64  # the end of the step before, which the model expects ahead of each step
_STATE: Final = (2, 1, 128)


@dataclass(frozen=True, kw_only=True)
class Activity:
    """`share` of the steps with a probability of at least the threshold; `seconds` the same as time."""

    share: float
    seconds: float


class VoiceModel:
    """The model, loaded once."""

    def __init__(self, model: FoundModel) -> None:
        self._session: Any = models.session(model)

    def probabilities(self, wave: Wave) -> list[float]:
        """Probability of a voice in each whole step of [samples] at 16 kHz, from a fresh state; the rest is padded."""
        padded = np.pad(wave, (CONTEXT, -wave.size % STEP))
        state, rate = np.zeros(_STATE, dtype=np.float32), np.array(models.MODEL_RATE_HZ, dtype=np.int64)
        found = []
        for at in range(0, padded.size - CONTEXT, STEP):
            step = padded[np.newaxis, at : at + CONTEXT + STEP]
            output, state = self._session.run(None, {"input": step, "state": state, "sr": rate})
            found.append(float(output[0, 0]))
        return found


def activity(probabilities: Sequence[float], threshold: float) -> Activity:
    """Sum up the steps; at least one."""
    active = sum(1 for probability in probabilities if probability >= threshold)
    return Activity(share=active / len(probabilities), seconds=active * STEP / models.MODEL_RATE_HZ)
