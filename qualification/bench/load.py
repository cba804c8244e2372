"""How requests meet the server: kept in flight, started together, or arriving by chance.

Each load takes jobs and gives back one record a job, in order of the plan, whatever happened to it. A load measures
nothing else: while requests are in flight nothing is drawn and no file is written but one line of the journal a request
(see `measure`), so that the client's own work does not delay a stamp. What to ask for is the plan's business
(`profiles`), what it means is that of the gates.

`sustained`: C workers, each takes the next job when its last one has ended. `wave`: C jobs wait with open connections
and start together; the next C follow when all have ended. `poisson`: jobs start at drawn times whatever happened
before (open load); latency counts from the scheduled time, and more than `concurrency` in flight are still sent.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from qualification.bench.client import Observation, SpeechCall, open_for_speech, speak
from qualification.bench.clock import Clock
from qualification.bench.connection import Deadlines
from qualification.bench.load_kind import Load
from qualification.bench.raw import RequestOutcome, RequestRecord
from qualification.bench.target import Target
from qualification.errors import SubjectError

_CONNECT_AHEAD_SECONDS = 0.25


@dataclass(frozen=True, kw_only=True)
class Job:
    """One planned request: what to ask, and where in the plan it stands."""

    call: SpeechCall
    phase: Literal["warmup", "measure"]
    profile: str
    round: int
    index: int
    workload_id: str
    language: str


@dataclass(frozen=True, kw_only=True)
class Spoken:
    """A finished job: its record (with `audio` still null) and the PCM that arrived."""

    record: RequestRecord
    pcm: bytes


class Driver:
    """Drives one target. `finished` receives each result at once, for progress and for keeping what there is.

    `alive` says whether a subject that the harness started still runs; where it has died, or where nothing but
    transport failures came back for a while, no further request is sent, those in flight are followed to their end, and
    the load closes with `SubjectError` instead of measuring a corpse.
    """

    def __init__(
        self,
        target: Target,
        clock: Clock,
        deadlines: Deadlines,
        *,
        finished: Callable[[Spoken], None],
        alive: Callable[[], bool],
    ) -> None:
        self._target = target
        self._clock = clock
        self._deadlines = deadlines
        self._finished = finished
        self._alive = alive
        self._dead_in_a_row = 0
        self._corpse: str | None = None

    async def run(self, load: Load, jobs: Iterator[Job]) -> int:
        """Run all jobs under `load`; returns how many were sent.

        Raises:
            SubjectError: the subject died or stopped answering; results so far have been handed to `finished`.
        """
        self._dead_in_a_row, self._corpse = 0, None
        sent = await {"sustained": self._sustained, "wave": self._wave, "poisson": self._poisson}[load.kind](load, jobs)
        if self._corpse is not None:
            raise SubjectError(self._corpse)
        return sent

    async def _sustained(self, load: Load, jobs: Iterator[Job]) -> int:
        sent = 0

        async def worker() -> None:
            nonlocal sent
            for job in jobs:  # one iterator for all workers: each takes the next job
                sent += 1
                await self._one(load, job, self._clock.now_ns(), start=None)
                if self._corpse is not None:
                    return

        await _together([worker() for _ in range(load.concurrency)])
        return sent

    async def _wave(self, load: Load, jobs: Iterator[Job]) -> int:
        sent = 0
        while self._corpse is None and (batch := list(islice(jobs, load.concurrency))):
            barrier = asyncio.Barrier(len(batch))
            scheduled_ns = self._clock.now_ns()
            await _together([self._one(load, job, scheduled_ns, start=barrier) for job in batch])
            sent += len(batch)
        return sent

    async def _poisson(self, load: Load, jobs: Iterator[Job]) -> int:
        if not load.rate_per_second or load.rate_per_second <= 0:
            raise ValueError("an open load needs a positive rate_per_second")
        draw = random.Random(load.arrival_seed)
        due_ns = self._clock.now_ns() + int(_CONNECT_AHEAD_SECONDS * 1e9)
        waiting = []
        for job in jobs:
            due_ns += int(draw.expovariate(load.rate_per_second) * 1e9)
            waiting.append(self._one(load, job, due_ns, start=due_ns))
        await _together(waiting)
        return len(waiting)

    async def _one(self, load: Load, job: Job, scheduled_ns: int, *, start: asyncio.Barrier | int | None) -> None:
        if isinstance(start, int):
            await asyncio.sleep(self._clock.seconds_until(start) - _CONNECT_AHEAD_SECONDS)
            if self._corpse is not None:
                return
        opened = await open_for_speech(self._target, self._clock, self._deadlines)
        if isinstance(start, asyncio.Barrier):
            await start.wait()
        elif isinstance(start, int):
            await asyncio.sleep(self._clock.seconds_until(start))
        seen = opened if isinstance(opened, Observation) else await speak(opened, job.call, self._clock)
        self._finished(Spoken(record=_record(load, job, scheduled_ns, seen), pcm=seen.pcm))
        self._check_life(load, seen)

    def _check_life(self, load: Load, seen: Observation) -> None:
        if seen.outcome is not RequestOutcome.TRANSPORT_ERROR:
            self._dead_in_a_row = 0
            return
        self._dead_in_a_row += 1
        if not self._alive():
            self._corpse = f"the engine process ended while requests were in flight ({seen.error_detail})"
        elif self._dead_in_a_row >= max(4, 2 * load.concurrency):
            failures = (
                f"{self._dead_in_a_row} requests in a row failed, last with {seen.error_code}: {seen.error_detail}"
            )
            self._corpse = self._corpse or f"{self._target.url} stopped answering: {failures}"


def _record(load: Load, job: Job, scheduled_ns: int, seen: Observation) -> RequestRecord:
    return RequestRecord(
        request_id=job.call.request_id,
        phase=job.phase,
        profile=job.profile,
        load=load.kind,
        concurrency=load.concurrency,
        round=job.round,
        index=job.index,
        workload_id=job.workload_id,
        language=job.language,
        seed=job.call.seed,
        outcome=seen.outcome,
        http_status=seen.http_status,
        error_code=seen.error_code,
        error_detail=seen.error_detail,
        scheduled_ns=scheduled_ns,
        t0_ns=seen.t0_ns,
        headers_ns=seen.headers_ns,
        end_ns=seen.end_ns,
        packets=seen.packets,
        finish_reason=seen.finish_reason,
        echoed_seed=seen.echoed_seed,
        samples=seen.samples,
        pcm_sha256=seen.pcm_sha256,
        audio=None,
        server_metrics=seen.server_metrics,
    )


async def _together(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run all at once. Our own error, or an interruption, cancels the rest and is raised alone, not as a group."""
    tasks = [asyncio.ensure_future(item) for item in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
