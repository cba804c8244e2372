"""Random numbers of a request: the Philox counter stream keyed by its seed, nothing else.

Draw `frame * code_groups + codebook` of the stream decides that codebook of that frame, so the result depends neither
on the row, the batch, the device nor on what other requests do. NumPy guarantees the raw Philox stream across
versions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_MANTISSA_BITS = 24  # float32 holds 24 bits exactly, so every value stays below 1


def uniforms(seed: int, *, frames: int, code_groups: int) -> npt.NDArray[np.float32]:
    """Uniform numbers in [0, 1) for the first `frames` frames, shape [frames, code_groups]."""
    raw = np.random.Philox(key=seed).random_raw(frames * code_groups)
    scaled = (raw >> np.uint64(64 - _MANTISSA_BITS)).astype(np.float32) * np.float32(2.0**-_MANTISSA_BITS)
    return scaled.reshape(frames, code_groups)
