"""What a fleet is to consist of: how many replicas, of which engine, with which share of a machine."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from engine.contract import SpeechEngine
from engine.errors import UsageError
from engine.fleet.identity import Identity, identify
from engine.settings import EngineSettings

OCCUPANCY_ROOM = 2  # calls beside speech, for each slot, before Serve itself would hold one back


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One deployment.

    `least` and `most` bound the replicas; where they differ Serve scales between them, so that each has the share
    `occupancy` of its slots in use. `cpus`, `gpus` and `resources` (Ray's custom ones) are what a replica takes of its
    node. `scale_up_seconds` and `scale_down_seconds` are how long the occupancy must ask for it. `drain_seconds` is how
    long a replica that is to go may finish its streams. `generation` names the deployment; another one replaces it
    replica by replica, with `surge_percent` more of them meanwhile where the cluster has room.

    Raises:
        UsageError: a value outside its range.
    """

    make_engine: Callable[[], SpeechEngine]
    identify: Callable[[], Identity]
    generation: str
    slots: int
    least: int = 1
    most: int = 1
    cpus: float = 1.0
    gpus: float = 0.0
    resources: Mapping[str, float] = field(default_factory=dict)
    occupancy: float = 0.7
    scale_up_seconds: float = 5.0
    scale_down_seconds: float = 60.0
    drain_seconds: float = 180.0
    surge_percent: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise UsageError(f"replicas must be 1 or more and bounds in order, not {self.least} to {self.most}")
        if not 0 <= self.surge_percent <= 100:
            raise UsageError(f"the surge must be within 0 and 100 percent, not {self.surge_percent}")
        if not 0.0 < self.occupancy <= 1.0:
            raise UsageError(f"occupancy must be above 0 and at most 1, not {self.occupancy}")
        if self.cpus < 0 or self.gpus < 0 or self.cpus + self.gpus == 0:
            raise UsageError("a replica needs a share of a CPU or of a GPU")


def plan_for(settings: EngineSettings, *, image: str | None, **shape: Any) -> Plan:
    """The plan of the real engine; `shape` are fields of the plan. Its generation follows from settings, image and nodes."""
    nodes = sorted(shape.get("resources", {}))
    return Plan(
        make_engine=partial(_make_engine, settings),
        identify=partial(identify, settings.model),
        generation=hashlib.sha256(repr((settings, image, nodes)).encode()).hexdigest()[:12],
        slots=settings.rows,
        **shape,
    )


def _make_engine(settings: EngineSettings) -> SpeechEngine:
    from engine.synthesizer import Synthesizer  # takes seconds, and only replicas need it

    return Synthesizer(settings)
