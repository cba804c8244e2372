"""How an engine is to run: model, device, precision and capacity, checked before anything is loaded."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from engine.contract import DEFAULT_DURATION_SECONDS, frames_for
from engine.errors import UsageError
from engine.prompt_mode import TextMode

REFERENCE_MODEL = Path(__file__).parent / "reference_model"
REFERENCE_NAME = "assay/reference-voice-design"
MAX_ROWS = 64


class Precision(StrEnum):
    """Type of the talker's and predictor's weights. AUTO is BF16 on an accelerator and FP32 on a CPU. INT8 quantises the decode step's
    layers at load and leaves everything else as AUTO would have it."""

    AUTO = "auto"
    BF16 = "bf16"
    FP32 = "fp32"
    INT8 = "int8"


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """Settings of one engine.

    Raises:
        UsageError: a value outside its range.
    """

    model: Path = REFERENCE_MODEL
    model_name: str = ""
    device: str = "auto"
    precision: Precision = Precision.AUTO
    rows: int = 6
    positions: int = 4_096
    max_frames: int = field(default_factory=lambda: frames_for(DEFAULT_DURATION_SECONDS))
    text_mode: TextMode = TextMode.FULL
    threads: int = 0
    allow_symlinks: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.rows <= MAX_ROWS:
            raise UsageError(f"concurrent requests must be within 1 and {MAX_ROWS}, not {self.rows}")
        if self.max_frames < 1:
            raise UsageError("the longest utterance must have at least one frame")
        if self.positions <= self.max_frames:
            raise UsageError(
                f"{self.positions} cache positions leave no room for a prompt beside {self.max_frames} frames; "
                "raise --max-positions or lower --max-frames"
            )
        if self.threads < 0:
            raise UsageError("threads must be 0 (automatic) or more")

    @property
    def display_name(self) -> str:
        """The model name that the wire reports."""
        if self.model_name:
            return self.model_name
        return REFERENCE_NAME if self.model.resolve() == REFERENCE_MODEL.resolve() else self.model.resolve().name
