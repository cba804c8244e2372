"""Telemetry of one session, from before there is a subject to its end, and its record beside the journal.

The idle machine is watched first, so that what others do on it can be told from what the subject does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from qualification.bench.clock import Clock
from qualification.bench.phases import PhaseLog
from qualification.bundle import BundleWriter
from qualification.journal import Journal
from qualification.sessions import sampler_path
from qualification.subject import Subject
from qualification.telemetry import IDLE_SECONDS, Sampler


class Watch:
    """The sampling process of the journal's last session; its lines go into the journal, its record into the bundle."""

    def __init__(self, journal: Journal, bundle: BundleWriter, clock: Clock, phases: PhaseLog) -> None:
        self._journal = journal
        self._bundle = bundle
        self._clock = clock
        self._phases = phases
        self._sampler: Sampler | None = None
        self._is_elsewhere = False

    @contextmanager
    def idle(self) -> Iterator[None]:
        """Sampling while inside, at first of the idle machine. How it went is written down whatever happens."""
        number = self._journal.session
        with Sampler(clock=self._clock, path=self._journal.telemetry(number)) as self._sampler:
            try:
                with self._phases.phase("idle", "idle machine, before the subject"):
                    time.sleep(IDLE_SECONDS)
                yield
            finally:
                self._sampler.stop()
                if self._is_elsewhere:
                    self._journal.telemetry(number).unlink()  # of this machine, and the subject's is another's
                else:
                    document = self._sampler.document(self._journal.start["run_id"], number)
                    self._bundle.document(sampler_path(number), document)

    def of(self, subject: Subject) -> None:
        """Who is watched: what speaks for an engine on another machine leaves no telemetry."""
        self._is_elsewhere = subject.kind == "adapter"

    @contextmanager
    def subject(self, subject: Subject, interval_ms: int) -> Iterator[None]:
        """Sampling of the subject's processes while inside; of an endpoint's there is none to be had."""
        if self._sampler is None or subject.pid is None:
            yield
            return
        self._sampler.watch(subject.pid, interval_ms)
        try:
            yield
        finally:
            self._sampler.stop()
