"""A qualification from first to last: prepare, identify, launch, measure, evaluate, seal, report, verify.

Each step writes files that the next ones read. A gate that fails changes the verdict and stops nothing; only what
makes a measurement impossible (no model, no engine, Ctrl-C) ends a session early. Then the files so far stay where they
are, with `records/interruption-NN.json` beside them and without a manifest, so that nobody can take them for evidence;
the journal lets the run go on from the last unit that was whole. A session is one start of the subject: most runs have
one, a run that was resumed or that takes turns with another has more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from qualification import paths
from qualification.assembly import assemble, units_of
from qualification.bench.clock import Clock
from qualification.bench.phases import PhaseLog, utc_now
from qualification.bench.profiles import RATE, Plan, load_plan, with_rate
from qualification.bench.statistics import share_upper95
from qualification.bundle import BundleWriter, Report
from qualification.container.session import ContainerSession, NoEngine, session_for
from qualification.environment import capture_environment
from qualification.errors import InputError, QualificationError, SubjectError
from qualification.evidence_view import EvidenceView
from qualification.fleet import ask_fleet, fleet_document, fleet_path
from qualification.gates.table import GATES
from qualification.identification import Parts, identify
from qualification.inputs import Inputs
from qualification.journal import Journal, Unit
from qualification.keeping import Keeping
from qualification.measure import Measurer
from qualification.policy import UNVERIFIED, Verdict
from qualification.progress import Screen
from qualification.results import GateResult
from qualification.resume import clock_of, recover, reopened, start_document
from qualification.run_record import run_document, subject_document
from qualification.selection import narrowed
from qualification.sessions import (
    interruption_document,
    interruption_path,
    session_document,
)
from qualification.source_state import source_state
from qualification.subject import Subject, at_endpoint, engine_command, process_start, started
from qualification.watching import Watch
from qualification.workload import Kind


@dataclass(frozen=True, kw_only=True)
class Qualified:
    """A sealed run: where it lies, what the gates said, and the verdict."""

    root: Path
    results: tuple[GateResult, ...]
    verdict: Verdict


class Run:
    """One run over checked inputs; `stage` says how far it came.

    Raises:
        ResumeRefused: the directory that it would go on in is of another run.
    """

    def __init__(self, inputs: Inputs, screen: Screen, *, report: Report | None) -> None:
        self._inputs = inputs
        self._screen = screen
        self._report = report
        self._source = source_state()
        self._journal = self._opened()
        self._bundle = BundleWriter(inputs.out)
        self._keeping = Keeping(self._bundle)
        self._phases = PhaseLog(self._clock, keep=self._journal.phase)
        self._subject: Subject | None = None
        self._container = session_for(inputs, self._clock)
        self._plan: Plan | None = None
        self._watching = ExitStack()
        self._watch: Watch | None = None
        self._tier = UNVERIFIED
        self.stage = "identify"

    def _opened(self) -> Journal:
        """The journal of a new run, or of the one to go on with, cleared up after its last session."""
        inputs = self._inputs
        if inputs.options.resume is None:
            self._clock, self._clock_kept = Clock(), "continued"
            BundleWriter.create(inputs.out)
            return Journal.create(inputs.out, start_document(inputs, self._source, self._clock))
        journal = reopened(inputs, self._source)
        self._clock, self._clock_kept = clock_of(journal)
        recover(journal)
        return journal

    def qualify(self) -> Qualified:
        """Every step in order.

        Raises:
            QualificationError: the run could not be finished; the directory says why, and the run can be resumed.
        """
        try:
            self.session()
            return self.seal()
        except (Exception, KeyboardInterrupt) as error:  # a fault of our own, too, must not pass for a finished run
            self.interrupted(error)
            raise

    def session(self, units: Sequence[Unit] | None = None) -> None:
        """Start the subject once and run `units` (None: all that are left); nothing is started for nothing.

        In a container, or where there is no engine for one, as a process; the record says which and why.
        """
        self._journal.log("begun")
        self._began = (utc_now(), self._clock.now_ns())
        self._enter("identify")
        self._copy_inputs()
        self._subject, self._watch = None, None
        with ExitStack() as self._watching:
            if self._container is None or not self._in_container(self._container, units):
                self._as_process(units)
        self._journal.log("ended")

    def left(self) -> tuple[Unit, ...]:
        """Units of the plan that are not whole; the run must have been identified."""
        assert self._plan is not None
        return tuple(unit for unit in units_of(self._plan) if not self._journal.done(unit))

    @property
    def plan(self) -> Plan | None:
        """The plan, once the run has been identified."""
        return self._plan

    @property
    def next_session(self) -> int:
        """Number that the next session will have."""
        return self._journal.session + 1

    def done(self, unit: Unit) -> bool:
        """Whether a unit is whole."""
        return self._journal.done(unit)

    def now_ns(self) -> int:
        """Now on the run's clock."""
        return self._clock.now_ns()

    def close(self) -> None:
        """Let go of the directory, whose run may go on in another process; twice is once."""
        self._journal.close()

    def _chosen(self, units: Sequence[Unit] | None) -> tuple[Unit, ...]:
        """Units that are not whole yet, of those asked for; nothing is measured twice."""
        return tuple(unit for unit in self.left() if units is None or unit in units)

    def _as_process(self, units: Sequence[Unit] | None) -> None:
        unreadable = self._inputs.options.endpoint is not None
        self.identify(Parts(model=self._inputs.model, metadata=None if unreadable else ()))
        chosen = self._chosen(units)
        if chosen:
            with self._launched(self._launching()) as subject:
                self._measure(subject, chosen)

    def _in_container(self, session: ContainerSession, units: Sequence[Unit] | None) -> bool:
        """Whether there was an engine. Identity comes from the files inside, so the image runs before it is identified."""
        try:
            with self._launched(session.subject()) as subject:
                self.identify(session.parts)
                self._measure(subject, self._chosen(units))
                if not self.left():
                    self._compare(session, subject)
        except NoEngine as fault:
            if self._inputs.options.image is not None:
                raise  # measuring something else would answer another question
            self._screen.step("container", f"not performed: {fault}")
            return False
        return True

    def _compare(self, session: ContainerSession, subject: Subject) -> None:
        items = self._inputs.workload.items(Kind.BENCH, seeds=1)
        try:
            with self._phases.phase("other", "speak inside and outside the container by turns"):
                session.compare(self._inputs.run_id, subject, items)
        except SubjectError as error:
            self._screen.step("parity", f"not performed: {error}")

    def _enter(self, stage: str) -> None:
        self.stage = stage
        self._journal.log("stage", stage=stage)

    def _copy_inputs(self) -> None:
        inputs = self._inputs
        for path, document in (
            (paths.POLICY, inputs.policy.document),
            (paths.PINS, inputs.pins.document),
            (paths.WORKLOAD, inputs.workload.document),
        ):
            self._keeping.document(path, document)

    def identify(self, parts: Parts) -> None:
        """Hash the model, read the licences; the tier follows from the hashes, and the plan from the tier. Once a process."""
        if self._plan is not None:
            return
        with self._phases.phase("setup", "hash the model and read licences"):
            found = identify(self._inputs, parts)
            self._keeping.document(paths.IDENTITY, found.identity)
            self._screen.step("identity", found.sentence)
            self._keeping.document(paths.LICENCES, found.licences)
            self._screen.step("licences", found.read)
        self._tier = found.tier
        asked = self._inputs.options.tier
        if asked not in (None, found.tier):
            raise InputError(f"--tier {asked} was asked for, and the files are of tier {found.tier}: {found.sentence}")
        options = self._inputs.options
        plan = load_plan(found.tier, self._inputs.workload, options.plan, rounds=options.rounds)
        if options.eos_rate is not None:
            plan = with_rate(plan, options.eos_rate, self._inputs.workload)
            self._tell_rate(plan)
        self._plan = narrowed(plan, self._inputs.gates_selected)

    def _tell_rate(self, plan: Plan) -> None:
        """What the requests for the rate can show at best."""
        rate = next(profile for profile in plan.profiles if profile.name == RATE)
        count = rate.rounds * rate.requests_per_round
        best = f"without a miss they bound the rate at {share_upper95(0, count):.2%}"
        self._screen.step("rate", f"{count} requests for the rate of natural ends, in {rate.rounds} rounds; {best}")

    @contextmanager
    def _launched(self, launching: AbstractContextManager[Subject]) -> Iterator[Subject]:
        """The subject, ready; what it wrote is kept once it has stopped."""
        self._enter("launch")
        try:
            with ExitStack() as stack:
                watch = self._watched()
                with self._phases.phase("setup", "start the subject"):
                    subject = stack.enter_context(launching)
                self._subject = subject
                watch.of(subject)
                said = subject.capabilities
                where = f"{said.model} at {subject.target.url}, {said.max_concurrent_requests} slots"
                self._screen.step("subject", where)
                yield subject
        finally:
            tail = self._subject.log_tail() if self._subject else ()
            if tail:
                path = f"logs/engine-{self._journal.session:02}.log"
                self._bundle.raw_bytes(path, ("\n".join(tail) + "\n").encode())

    def _watched(self) -> Watch:
        """Telemetry, once a session; of an endpoint's processes there is none to be had."""
        if self._watch is None:
            self._watch = Watch(self._journal, self._bundle, self._clock, self._phases)
            if self._inputs.options.endpoint is None:
                self._watching.enter_context(self._watch.idle())
        return self._watch

    def _launching(self) -> AbstractContextManager[Subject]:
        inputs = self._inputs
        options = inputs.options
        if options.endpoint is not None:
            return at_endpoint(options.endpoint, self._clock)
        if options.engine_command or inputs.model is None:
            return started(options.engine_command, self._clock)
        command = engine_command(model=inputs.model, precision=options.precision, device=options.device)
        return started(command, self._clock)

    def _measure(self, subject: Subject, units: Sequence[Unit]) -> None:
        """Capture the machine, then run the units, with telemetry all the while."""
        assert self._plan is not None
        self._record(subject)
        self._enter("measure")
        before = ask_fleet(subject.target, self._clock)
        try:
            with self._watched().subject(subject, self._plan.parameters.telemetry_interval_ms):
                Measurer(
                    plan=self._clamped(subject.capabilities.max_duration_seconds),
                    workload=self._inputs.workload,
                    subject=subject,
                    clock=self._clock,
                    phases=self._phases,
                    bundle=self._bundle,
                    journal=self._journal,
                    screen=self._screen,
                ).run(units)
        except SubjectError as error:
            if subject.alive():
                raise
            raise SubjectError(f"{error}\n{subject.obituary()}") from error
        self._keep_fleet(before, ask_fleet(subject.target, self._clock))

    def _keep_fleet(self, *seen: Mapping[str, Any] | None) -> None:
        number = self._journal.session
        document = fleet_document(self._inputs.run_id, number, *seen)
        if document is not None:
            self._bundle.document(fleet_path(number), document)

    def _record(self, subject: Subject) -> None:
        """Machine and subject must be what they were; then the session has its record."""
        pids = () if subject.pid is None else (subject.pid,)
        environment = capture_environment(self._inputs.run_id, source=self._source, own_processes=pids)
        self._keeping.document(paths.ENVIRONMENT, environment)
        image = self._container.image if self._container else None
        document = session_document(
            self._journal,
            began=self._began,
            ready_ns=self._clock.now_ns(),
            clock=self._clock_kept,
            subject=subject_document(subject, self._inputs.options, image),
            max_duration_seconds=subject.capabilities.max_duration_seconds,
            load=environment["machine"]["load_average"],
        )
        self._keeping.session(document)
        self._journal.log("subject", pid=subject.process and subject.process.pid, pid_started=process_start(subject))

    def _clamped(self, ceiling: float) -> Plan:
        """The plan with the audio ceiling that the subject allows."""
        assert self._plan is not None
        parameters = self._plan.parameters
        seconds = min(parameters.max_duration_seconds, ceiling)
        sampling = self._inputs.options.sampling
        return replace(self._plan, parameters=replace(parameters, max_duration_seconds=seconds, sampling=sampling))

    def seal(self) -> Qualified:
        """Write what is left of the record, evaluate every gate from the files, and seal; the journal is gone then."""
        self._enter("seal")
        sessions = EvidenceView(self._bundle.root).sessions
        plan = self._clamped(sessions[-1]["max_duration_seconds"])
        assemble(self._journal, plan, self._inputs.workload, self._bundle)
        phases = self._phases.document(self._inputs.run_id, self._journal.start["zero_utc"], self._journal.phases())
        self._bundle.document(paths.PHASES, phases)
        document = run_document(
            self._inputs,
            plan=plan,
            subject=sessions[-1]["subject"],
            sessions=len(sessions),
            tier=self._tier,
            source=self._source,
            started_utc=self._journal.start["started_utc"],
        )
        self._bundle.document(paths.RUN, document)
        self._keep_container()
        verdict = self._bundle.seal(GATES, report=self._report, key=self._inputs.key)
        self._journal.remove()
        results = EvidenceView(self._bundle.root).document(paths.GATES)["results"]
        return Qualified(
            root=self._bundle.root, results=tuple(GateResult.from_json(item) for item in results), verdict=verdict
        )

    def interrupted(self, error: BaseException) -> None:
        """Say in the directory why the session ended; what cannot be written then must not hide the error."""
        log = self._subject.log_tail() if self._subject else ()
        with suppress(OSError, QualificationError):
            document = interruption_document(self._journal, stage=self.stage, error=error, log=log)
            self._bundle.document(interruption_path(self._journal.session), document)
        with suppress(OSError, QualificationError):
            self._keep_container()
        self._journal.close()

    def _keep_container(self) -> None:
        """Write what the container left."""
        for path, content in (self._container.files(self._inputs.run_id) if self._container else {}).items():
            self._bundle.raw_bytes(path, content)
