"""DNSMOS (ITU-T P.835 as a model estimates it): a number that moves when the sound moves, and no verdict on quality.

The model was trained on noisy speech of people, not on synthesis. So its figures are only compared with those of the same
model, over the same sentences, of a subject that was pinned before. Windows of 9.01 s, one each second; a shorter
utterance is repeated to fill one window, as the authors of the model do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from qualification.audio_review import models
from qualification.audio_review.models import FoundModel, Wave

WINDOW: Final = 144_160  # 9.01 s
_WINDOW_SECONDS: Final = 9.01
# Second-order polynomials from the model's outputs to the scale of listeners, highest power first.
_SIGNAL: Final = (-0.08397278, 1.22083953, 0.0052439)
_BACKGROUND: Final = (-0.13166888, 1.60915514, -0.39604546)
_OVERALL: Final = (-0.06766283, 1.11546468, 0.04602535)


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Estimated ratings of speech signal, background and both together, about 1 to 5."""

    signal: float
    background: float
    overall: float


class DnsmosModel:
    """The model, loaded once."""

    def __init__(self, model: FoundModel) -> None:
        self._session: Any = models.session(model)

    def scores(self, wave: Wave) -> Scores:
        """Mean over the windows of [samples] at 16 kHz; at least one sample."""
        while wave.size < WINDOW:
            wave = np.concatenate((wave, wave))
        rate = models.MODEL_RATE_HZ
        windows = int(wave.size // rate - _WINDOW_SECONDS) + 1
        raw = [self._raw(wave[at * rate : at * rate + WINDOW]) for at in range(windows)]
        signal, background, overall = (
            float(np.mean([np.polyval(curve, values[place]) for values in raw]))
            for place, curve in enumerate((_SIGNAL, _BACKGROUND, _OVERALL))
        )
        return Scores(signal=signal, background=background, overall=overall)

    def _raw(self, window: Wave) -> tuple[float, float, float]:
        output = self._session.run(None, {"input_1": window[np.newaxis]})[0][0]
        return float(output[0]), float(output[1]), float(output[2])
