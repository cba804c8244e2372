"""Models that installed wheels carry, used only if their bytes are the ones that the policy pins.

The wheels are never imported: their code would ask for more packages than the models do. A model is found in its
distribution, hashed, and run by onnxruntime on one thread, so that the same bytes give the same figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qualification.bench.raw import SAMPLE_RATE_HZ
from qualification.clip import FULL_SCALE
from qualification.digest import sha256_file
from qualification.errors import InputError

MODEL_RATE_HZ: Final = 16_000
UP, DOWN = 2, 3
Wave = npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class ModelPin:
    """A model as the policy pins it: the file `path` of a distribution, and the SPDX expression of its licence."""

    name: str
    distribution: str
    path: str
    sha256: str
    licence: str
    licence_source: str


@dataclass(frozen=True, kw_only=True)
class FoundModel:
    """A pinned model that is there, with the version of the distribution that brought it."""

    pin: ModelPin
    version: str
    file: Path

    def to_json(self) -> dict[str, Any]:
        """The object of the record."""
        return {**asdict(self.pin), "version": self.version, "bytes": self.file.stat().st_size}


def find(pin: ModelPin) -> FoundModel:
    """The pinned model in this environment.

    Raises:
        InputError: its distribution is not installed, or brings other bytes.
    """
    try:
        found = distribution(pin.distribution)
    except PackageNotFoundError as error:
        raise InputError(f"{pin.distribution} is not installed; install `tts-assay[review]`") from error
    file = Path(str(found.locate_file(pin.path)))
    if not file.is_file() or sha256_file(file) != pin.sha256:
        raise InputError(f"{pin.distribution} {found.version} brings another {pin.path} than the policy pins")
    return FoundModel(pin=pin, version=found.version, file=file)


def session(model: FoundModel) -> Any:
    """An onnxruntime session on one thread of the processor. Raises `InputError` where onnxruntime is missing."""
    try:
        import onnxruntime
    except ImportError as error:
        raise InputError("onnxruntime is not installed; install `tts-assay[review]`") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(model.file), sess_options=options, providers=["CPUExecutionProvider"])


def resample(pcm: npt.NDArray[np.int16]) -> Wave:
    """[samples] at 24 kHz -> [samples x 2 / 3] at 16 kHz in full scales, by scipy's polyphase filter with its default
    window. Raises `InputError` where scipy is missing."""
    try:
        from scipy.signal import resample_poly
    except ImportError as error:
        raise InputError("scipy is not installed; install `tts-assay[review]`") from error
    wave = resample_poly(pcm.astype(np.float64) / FULL_SCALE, UP, DOWN)
    clipped: Wave = np.clip(wave, -1.0, 1.0).astype(np.float32)
    return clipped


def resampler(version: str) -> Mapping[str, Any]:
    """How `resample` works, for the record."""
    return {
        "name": "scipy.signal.resample_poly",
        "version": version,
        "from_hz": SAMPLE_RATE_HZ,
        "to_hz": MODEL_RATE_HZ,
        "parameters": f"up={UP}, down={DOWN}, window=('kaiser', 5.0), padtype='constant'",
    }
