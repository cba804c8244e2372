"""Progress of a training stage and its learning rate: linear warm-up, then half a cosine down to a fiftieth."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

FLOOR = 0.02


@dataclass(frozen=True, kw_only=True)
class Budget:
    """A stage ends at `steps` or after `seconds`, whichever comes first."""

    steps: int
    seconds: float
    warmup_steps: int
    learning_rate: float


class Schedule:
    """Follows one stage. Time starts with the object."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._start = time.monotonic()
        self.step = 0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start

    @property
    def progress(self) -> float:
        """0 at the beginning, 1 when the stage is over."""
        return min(1.0, max(self.step / self._budget.steps, self.seconds / self._budget.seconds))

    @property
    def over(self) -> bool:
        return self.progress >= 1.0

    def learning_rate(self) -> float:
        warm = min(1.0, (self.step + 1) / self._budget.warmup_steps)
        cosine = 0.5 + 0.5 * math.cos(math.pi * self.progress)
        return self._budget.learning_rate * warm * (FLOOR + (1.0 - FLOOR) * cosine)
