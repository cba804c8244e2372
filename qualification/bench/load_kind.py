"""The kinds of load by name, apart from what drives them: plans and verifiers read them without any client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LoadKind = Literal["sustained", "wave", "poisson"]


@dataclass(frozen=True, kw_only=True)
class Load:
    """The kind of load, how many requests at once, and for open load the mean arrivals a second."""

    kind: LoadKind
    concurrency: int
    rate_per_second: float | None = None
    arrival_seed: int = 0
