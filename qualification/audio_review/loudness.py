"""Integrated loudness after ITU-R BS.1770-4, by pyloudnorm."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from qualification.bench.raw import SAMPLE_RATE_HZ
from qualification.clip import FULL_SCALE
from qualification.errors import InputError

LEAST_SECONDS: Final = 0.4  # one gating block


def integrated(pcm: npt.NDArray[np.int16]) -> float | None:
    """Loudness of [samples] at 24 kHz in LUFS; None for less than one block, and where the gate leaves nothing.

    Raises:
        InputError: pyloudnorm is not installed.
    """
    try:
        from pyloudnorm import Meter
    except ImportError as error:
        raise InputError("pyloudnorm is not installed; install `tts-assay[review]`") from error
    if pcm.size <= LEAST_SECONDS * SAMPLE_RATE_HZ:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(Meter(SAMPLE_RATE_HZ).integrated_loudness(pcm.astype(np.float64) / FULL_SCALE))
    return value if math.isfinite(value) else None
