"""Runs a plan against a subject and keeps what came back: raw records, phases, and the utterances that the plan stores.

Files are written between profiles, never while requests are in flight. What has been measured is written even when the
rest is not to be had: a subject that dies, or Ctrl-C, costs the requests in flight and nothing that came before them.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from qualification.bench.client import SpeechCall
from qualification.bench.clock import Clock
from qualification.bench.connection import Deadlines
from qualification.bench.load import Driver, Job, Spoken
from qualification.bench.phases import PhaseLog
from qualification.bench.profiles import Plan, Profile
from qualification.bench.raw import RequestRecord
from qualification.bench.storing import stored_ids
from qualification.bundle import BundleWriter
from qualification.paths import AUDIO_DIRECTORY
from qualification.progress import Screen
from qualification.subject import Subject
from qualification.workload import Workload

_SILENCE_SECONDS = 30.0


class Measurer:
    """One subject, one plan, one evidence directory."""

    def __init__(
        self,
        *,
        plan: Plan,
        workload: Workload,
        subject: Subject,
        clock: Clock,
        phases: PhaseLog,
        bundle: BundleWriter,
        screen: Screen,
    ) -> None:
        self._plan = plan
        self._workload = workload
        self._subject = subject
        self._clock = clock
        self._phases = phases
        self._bundle = bundle
        self._screen = screen

    def run(self) -> None:
        """Every profile of the plan in order.

        Raises:
            SubjectError: the subject died or stopped answering; what came before is in the directory.
        """
        for profile in self._plan.profiles:
            spoken: list[Spoken] = []
            try:
                for turn in range(profile.rounds):
                    self._phase("warmup", profile, turn, spoken)
                    self._phase("measure", profile, turn, spoken)
            finally:
                self._keep(profile, spoken)

    def _phase(self, kind: Literal["warmup", "measure"], profile: Profile, turn: int, spoken: list[Spoken]) -> None:
        indices = iter(range(profile.warmup_requests)) if kind == "warmup" else profile.indices()
        total = profile.warmup_requests if kind == "warmup" else profile.requests_per_round
        if total == 0:
            return
        before = len(spoken)

        def finished(result: Spoken) -> None:
            spoken.append(result)
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
                sampling={},
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

    def _keep(self, profile: Profile, spoken: list[Spoken]) -> None:
        """Write the profile's records in the order of the plan, and the utterances to be stored."""
        if not spoken:
            return
        ordered = sorted(spoken, key=lambda s: (s.record.round, s.record.phase == "measure", s.record.index))
        chosen = stored_ids(self._plan.parameters.store_audio, [s.record for s in ordered], self._workload)
        self._bundle.records(
            profile.samples, [self._store(s) if s.record.request_id in chosen else s.record for s in ordered]
        )

    def _store(self, spoken: Spoken) -> RequestRecord:
        path = f"{AUDIO_DIRECTORY}/{spoken.record.request_id}.wav"
        self._bundle.audio(path, spoken.pcm)
        return replace(spoken.record, audio=path)

    def _deadlines(self) -> Deadlines:
        longest = self._plan.parameters.timeout_seconds
        return Deadlines(headers=longest, silence=min(longest, _SILENCE_SECONDS), total=longest)
