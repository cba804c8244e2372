"""The same commit inside and outside a container, one request in flight, side by side in one run.

Rounds alternate who goes first (AB, BA, AB, …), so that what drifts on the machine hits both sides alike. Each round
speaks the same texts with the same seeds on both sides; what is kept is raw: one row a request. The gate
`container.parity` makes the figures.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from qualification import schema
from qualification.bench.client import Observation, SpeechCall, open_for_speech, speak
from qualification.bench.clock import Clock
from qualification.bench.connection import Connection, Deadlines
from qualification.bench.target import Target
from qualification.workload import WorkItem

BARE: Final = "bare"
CONTAINER: Final = "container"
FILE: Final = "parity.json"


@dataclass(frozen=True, kw_only=True)
class ParityPlan:
    """How much is spoken. A one-sided 95 % bound of the median needs at least five rounds; more can decide more."""

    rounds: int = 8
    requests: int = 3
    warmup: int = 2
    max_duration_seconds: float = 20.0


def measure_parity(
    run_id: str, bare: Target, container: Target, items: Sequence[WorkItem], plan: ParityPlan, clock: Clock
) -> dict[str, Any]:
    """Speak every round on both sides; the document `parity.json`, failures kept."""
    sides = {BARE: bare, CONTAINER: container}
    rows = [_spoken(sides[side], side, turn, items, plan, clock) for turn in _turns(plan) for side in turn.order]
    document = {
        "schema": schema.urn("parity"),
        "run_id": run_id,
        "rounds": plan.rounds,
        "requests_per_round": plan.requests,
        "rows": [row for group in rows for row in group],
    }
    schema.validate("parity", document, FILE)
    return document


@dataclass(frozen=True, kw_only=True)
class _Turn:
    """One round; `number` -1 is the warm-up."""

    number: int
    order: tuple[str, str]


def _turns(plan: ParityPlan) -> Iterator[_Turn]:
    yield _Turn(number=-1, order=(BARE, CONTAINER))
    for number in range(plan.rounds):
        yield _Turn(number=number, order=(BARE, CONTAINER) if number % 2 == 0 else (CONTAINER, BARE))


def _spoken(
    target: Target, side: str, turn: _Turn, items: Sequence[WorkItem], plan: ParityPlan, clock: Clock
) -> list[dict[str, Any]]:
    count = plan.warmup if turn.number < 0 else plan.requests
    first = max(turn.number, 0) * plan.requests
    chosen = [items[(first + index) % len(items)] for index in range(count)]
    seen = [asyncio.run(_one(target, _call(item, plan), clock)) for item in chosen]
    return [
        {
            "round": turn.number,
            "position": turn.order.index(side),
            "side": side,
            "index": index,
            "workload_id": item.entry.id,
            "seed": item.seed,
            "outcome": found.outcome.value,
            "t0_ns": found.t0_ns,
            "end_ns": found.end_ns,
            "samples": found.samples,
            "pcm_sha256": found.pcm_sha256,
        }
        for index, (item, found) in enumerate(zip(chosen, seen, strict=True))
    ]


def _call(item: WorkItem, plan: ParityPlan) -> SpeechCall:
    return SpeechCall(
        request_id=str(uuid4()),
        text=item.entry.text,
        voice_description=item.entry.voice_description,
        language=item.entry.language_field,
        seed=item.seed,
        max_duration_seconds=plan.max_duration_seconds,
        sampling={},
    )


async def _one(target: Target, call: SpeechCall, clock: Clock) -> Observation:
    opened = await open_for_speech(target, clock, Deadlines())
    return await speak(opened, call, clock) if isinstance(opened, Connection) else opened
