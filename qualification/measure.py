"""Runs units of a plan against a subject and keeps what came back: raw records, and the utterances that the plan stores.

A unit is one round of one profile with its warm-up. While requests are in flight only the journal is written, a line as
each of them ends (0.03 ms for 10 packets, 0.12 ms for 60); utterances are stored when the unit has ended, and it counts
from then on. A subject that dies, Ctrl-C or a kill costs the requests in flight and nothing that came before them.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterable, Iterator
from typing import Literal

from qualification.bench.client import SpeechCall
from qualification.bench.clock import Clock
from qualification.bench.connection import Deadlines
from qualification.bench.load import Driver, Job, Spoken
from qualification.bench.phases import PhaseLog
from qualification.bench.profiles import Plan, Profile
from qualification.bench.raw import RequestOutcome
from qualification.bench.storing import audio_path, stored_ids
from qualification.bundle import BundleWriter
from qualification.errors import SubjectError
from qualification.journal import Journal, Unit, UnitWriter, begun, sync_file
from qualification.progress import Screen, TimeLeft
from qualification.subject import Subject
from qualification.workload import Workload

_SILENCE_SECONDS = 30.0
_DEATH_SECONDS = 0.5


class Measurer:
    """One subject, one plan, one evidence directory with its journal."""

    def __init__(
        self,
        *,
        plan: Plan,
        workload: Workload,
        subject: Subject,
        clock: Clock,
        phases: PhaseLog,
        bundle: BundleWriter,
        journal: Journal,
        screen: Screen,
    ) -> None:
        self._plan = plan
        self._workload = workload
        self._subject = subject
        self._clock = clock
        self._phases = phases
        self._bundle = bundle
        self._journal = journal
        self._screen = screen

    def run(self, units: Iterable[Unit]) -> None:
        """The units in the order given.

        Raises:
            SubjectError: the subject died or stopped answering; what came before is in the journal.
        """
        profiles = {profile.name: profile for profile in self._plan.profiles}
        todo, left = list(units), TimeLeft()
        for number, unit in enumerate(todo, start=1):
            began = time.monotonic()
            self._unit(profiles[unit.profile], unit)
            left.add(unit.profile, time.monotonic() - began)
            if todo[number:]:
                self._screen.step("left", left.words([later.profile for later in todo[number:]]))

    def _unit(self, profile: Profile, unit: Unit) -> None:
        self._journal.log("unit", unit=begun(unit))
        writer = UnitWriter(self._journal, unit)
        spoken: list[Spoken] = []
        try:
            self._phase("warmup", profile, unit.round, spoken, writer)
            self._phase("measure", profile, unit.round, spoken, writer)
            self._check_life(spoken)
            self._store(profile, unit, spoken)
            writer.complete()
        finally:
            writer.close()

    def _phase(
        self,
        kind: Literal["warmup", "measure"],
        profile: Profile,
        turn: int,
        spoken: list[Spoken],
        writer: UnitWriter,
    ) -> None:
        indices = iter(range(profile.warmup_requests)) if kind == "warmup" else profile.indices()
        total = profile.warmup_requests if kind == "warmup" else profile.requests_per_round
        if total == 0:
            return
        before = len(spoken)

        def finished(result: Spoken) -> None:
            spoken.append(result)
            writer.append(result.record)
            advance(result.record)

        with (
            self._screen.phase(f"{profile.name} {kind}", total) as advance,
            self._phases.phase(kind, f"{profile.title}, {kind}", profile=profile.name, round=turn) as phase,
        ):
            driver = Driver(
                self._subject.target,
                self._clock,
                self._deadlines(),
                finished=finished,
                alive=self._subject.alive,
            )
            try:
                asyncio.run(driver.run(profile.load_for(turn), self._jobs(kind, profile, turn, indices)))
            finally:
                phase.requests = len(spoken) - before

    def _jobs(
        self, kind: Literal["warmup", "measure"], profile: Profile, turn: int, indices: Iterator[int]
    ) -> Iterator[Job]:
        end_ns = self._clock.now_ns() + int(profile.minimum_seconds * 1e9)
        for index in indices:
            enough = profile.stop == "duration" and index >= profile.requests_per_round
            if kind == "measure" and enough and self._clock.now_ns() >= end_ns:
                return
            item = profile.item(self._workload, turn=turn, index=index)
            call = SpeechCall(
                request_id=str(uuid.uuid4()),
                text=item.entry.text,
                voice_description=item.entry.voice_description,
                language=item.entry.language_field,
                seed=item.seed,
                max_duration_seconds=self._plan.parameters.max_duration_seconds,
                sampling=self._plan.parameters.sampling or {},
                leaves_open=self._subject.capabilities.leaves_open,
            )
            yield Job(
                call=call,
                phase=kind,
                profile=profile.name,
                round=turn,
                index=index,
                workload_id=item.entry.id,
                language=item.entry.language,
            )

    def _check_life(self, spoken: list[Spoken]) -> None:
        """A subject that died in the last requests of a unit left no whole unit; the system takes a moment to say so."""
        if any(result.record.outcome is RequestOutcome.TRANSPORT_ERROR for result in spoken):
            time.sleep(_DEATH_SECONDS)
        if not self._subject.alive():
            raise SubjectError("the engine process ended before the round did")

    def _store(self, profile: Profile, unit: Unit, spoken: list[Spoken]) -> None:
        """Store the utterances that the plan wants of this unit; rounds of a profile run in order, so none is wanted later."""
        before = [Unit(profile=profile.name, round=turn) for turn in range(unit.round)]
        records = [record for earlier in before for record in self._journal.records(earlier)]
        records += [result.record for result in spoken]
        chosen = stored_ids(self._plan.parameters.store_audio, records, self._workload)
        for result in spoken:
            if result.record.request_id in chosen:
                path = audio_path(result.record)
                self._bundle.audio(path, result.pcm)
                sync_file(self._bundle.root / path)

    def _deadlines(self) -> Deadlines:
        longest = self._plan.parameters.timeout_seconds
        return Deadlines(headers=longest, silence=min(longest, _SILENCE_SECONDS), total=longest)
