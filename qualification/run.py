"""A qualification from first to last: prepare, identify, launch, measure, evaluate, seal, report, verify.

Each step writes files that the next ones read. A gate that fails changes the verdict and stops nothing; only what
makes a measurement impossible (no model, no engine, Ctrl-C) ends the run early. Then the files so far stay where they
are, with `records/interruption.json` beside them and without a manifest, so that nobody can take them for evidence.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from qualification import paths
from qualification.bench.clock import Clock
from qualification.bench.phases import PhaseLog, utc_now
from qualification.bench.profiles import Plan, load_plan
from qualification.bundle import BundleWriter, Report
from qualification.container.session import ContainerSession, NoEngine, session_for
from qualification.environment import capture_environment
from qualification.errors import (
    BundleError,
    InputError,
    QualificationError,
    SigningError,
    SubjectError,
    UsageError,
)
from qualification.evidence_view import EvidenceView
from qualification.gates.table import GATES
from qualification.identification import Parts, identify
from qualification.inputs import Inputs
from qualification.measure import Measurer
from qualification.policy import UNVERIFIED, Verdict
from qualification.progress import Screen
from qualification.results import GateResult
from qualification.run_record import run_document
from qualification.schema import urn
from qualification.selection import narrowed
from qualification.source_state import source_state
from qualification.subject import Subject, at_endpoint, engine_command, started
from qualification.telemetry import Sampler
from qualification.workload import Kind

_CAUSES = (
    (UsageError, "usage"),
    (InputError, "input"),
    (SubjectError, "subject"),
    (BundleError, "bundle"),
    (SigningError, "signing"),
    (KeyboardInterrupt, "interrupted"),
)


@dataclass(frozen=True, kw_only=True)
class Qualified:
    """A sealed run: where it lies, what the gates said, and the verdict."""

    root: Path
    results: tuple[GateResult, ...]
    verdict: Verdict


class Run:
    """One run over checked inputs; `stage` says how far it came."""

    def __init__(self, inputs: Inputs, screen: Screen, *, report: Report | None) -> None:
        self._inputs = inputs
        self._screen = screen
        self._report = report
        self._started_utc = utc_now()
        self._clock = Clock()
        self._phases = PhaseLog(self._clock)
        self._source = source_state()
        self._bundle = BundleWriter.create(inputs.out)
        self._subject: Subject | None = None
        self._container = session_for(inputs, self._clock)
        self._plan: Plan | None = None
        self._tier = UNVERIFIED
        self.stage = "identify"

    def qualify(self) -> Qualified:
        """Every step in order.

        Raises:
            QualificationError: the run could not be finished; the directory says why.
        """
        try:
            self._copy_inputs()
            self._run()
            return self._seal()
        except (Exception, KeyboardInterrupt) as error:  # a fault of our own, too, must not pass for a finished run
            self._interrupted(error)
            raise

    def _run(self) -> None:
        """In a container, or where there is no engine for one, as a process; the record says which and why."""
        if self._container is not None:
            try:
                self._run_container(self._container)
                return
            except NoEngine as fault:
                if self._inputs.options.image is not None:
                    raise  # measuring something else would answer another question
                self._screen.step("container", f"not performed: {fault}")
        unreadable = self._inputs.options.endpoint is not None
        self._identify(Parts(model=self._inputs.model, metadata=None if unreadable else ()))
        with self._launched(self._launching()) as subject:
            self._measure(subject)

    def _run_container(self, session: ContainerSession) -> None:
        """Identity comes from the files inside, so the image runs before it is identified."""
        with self._launched(session.subject()) as subject:
            self._identify(session.parts)
            self._measure(subject)
            items = self._inputs.workload.items(Kind.BENCH, seeds=1)
            try:
                with self._phases.phase("other", "speak inside and outside the container by turns"):
                    session.compare(self._inputs.run_id, subject, items)
            except SubjectError as error:
                self._screen.step("parity", f"not performed: {error}")

    def _copy_inputs(self) -> None:
        inputs = self._inputs
        for path, document in (
            (paths.POLICY, inputs.policy.document),
            (paths.PINS, inputs.pins.document),
            (paths.WORKLOAD, inputs.workload.document),
        ):
            self._bundle.document(path, document)

    def _identify(self, parts: Parts) -> None:
        """Hash the model, read the licences; the tier follows from the hashes, and the plan from the tier."""
        with self._phases.phase("setup", "hash the model and read licences"):
            found = identify(self._inputs, parts)
            self._bundle.document(paths.IDENTITY, found.identity)
            self._screen.step("identity", found.sentence)
            self._bundle.document(paths.LICENCES, found.licences)
            self._screen.step("licences", found.read)
        self._tier = found.tier
        asked = self._inputs.options.tier
        if asked not in (None, found.tier):
            raise InputError(f"--tier {asked} was asked for, and the files are of tier {found.tier}: {found.sentence}")
        plan = load_plan(found.tier, self._inputs.workload, self._inputs.options.plan)
        self._plan = narrowed(plan, self._inputs.gates_selected)

    @contextmanager
    def _launched(self, launching: AbstractContextManager[Subject]) -> Iterator[Subject]:
        """The subject, ready; what it wrote is kept once it has stopped."""
        self.stage = "launch"
        try:
            with ExitStack() as stack:
                with self._phases.phase("setup", "start the subject"):
                    subject = stack.enter_context(launching)
                self._subject = subject
                said = subject.capabilities
                where = f"{said.model} at {subject.target.url}, {said.max_concurrent_requests} slots"
                self._screen.step("subject", where)
                yield subject
        finally:
            tail = self._subject.log_tail() if self._subject else ()
            if tail:
                self._bundle.raw_bytes("logs/engine.log", ("\n".join(tail) + "\n").encode())

    def _launching(self) -> AbstractContextManager[Subject]:
        inputs = self._inputs
        options = inputs.options
        if options.endpoint is not None:
            return at_endpoint(options.endpoint, self._clock)
        if options.engine_command or inputs.model is None:
            return started(options.engine_command, self._clock)
        command = engine_command(model=inputs.model, precision=options.precision, device=options.device)
        return started(command, self._clock)

    def _measure(self, subject: Subject) -> None:
        """Capture the machine, then warm up and measure every profile, with telemetry all the while."""
        self.stage = "measure"
        inputs = self._inputs
        assert self._plan is not None
        parameters = self._plan.parameters
        ceiling = min(parameters.max_duration_seconds, subject.capabilities.max_duration_seconds)
        self._plan = replace(self._plan, parameters=replace(parameters, max_duration_seconds=ceiling))
        pids = () if subject.pid is None else (subject.pid,)
        environment = capture_environment(inputs.run_id, source=self._source, own_processes=pids)
        self._bundle.document(paths.ENVIRONMENT, environment)
        sampler = self._sampler(subject, parameters.telemetry_interval_ms)
        try:
            with sampler:
                Measurer(
                    plan=self._plan,
                    workload=inputs.workload,
                    subject=subject,
                    clock=self._clock,
                    phases=self._phases,
                    bundle=self._bundle,
                    screen=self._screen,
                ).run()
        except SubjectError as error:
            if subject.alive():
                raise
            raise SubjectError(f"{error}\n{subject.obituary()}") from error

    def _sampler(self, subject: Subject, interval_ms: int) -> AbstractContextManager[object]:
        """Telemetry of a process; of an endpoint there is none to be had."""
        if subject.pid is None:
            return nullcontext()
        path = self._bundle.root / paths.TELEMETRY
        return Sampler(pid=subject.pid, clock=self._clock, path=path, interval_ms=interval_ms)

    def _seal(self) -> Qualified:
        """Write what is left of the record, evaluate every gate from the files, and seal."""
        self.stage = "seal"
        assert self._subject is not None
        assert self._plan is not None
        self._bundle.document(paths.PHASES, self._phases.document(self._inputs.run_id))
        document = run_document(
            self._inputs,
            plan=self._plan,
            subject=self._subject,
            image=self._container.image if self._container else None,
            tier=self._tier,
            source=self._source,
            started_utc=self._started_utc,
        )
        self._bundle.document(paths.RUN, document)
        self._keep_container()
        verdict = self._bundle.seal(GATES, report=self._report, key=self._inputs.key)
        results = EvidenceView(self._bundle.root).document(paths.GATES)["results"]
        return Qualified(
            root=self._bundle.root, results=tuple(GateResult.from_json(item) for item in results), verdict=verdict
        )

    def _interrupted(self, error: BaseException) -> None:
        """Say in the directory why it will never be sealed; what cannot be written then must not hide the error."""
        with suppress(OSError, QualificationError):
            self._write_interruption(error)
        with suppress(OSError, QualificationError):
            self._keep_container()

    def _keep_container(self) -> None:
        """Write what the container left."""
        for path, content in (self._container.files(self._inputs.run_id) if self._container else {}).items():
            self._bundle.raw_bytes(path, content)

    def _write_interruption(self, error: BaseException) -> None:
        if not (self._bundle.root / paths.PHASES).exists() and self._phases.phases:
            self._bundle.document(paths.PHASES, self._phases.document(self._inputs.run_id))
        document = {
            "schema": urn("interruption"),
            "run_id": self._inputs.run_id,
            "at_utc": utc_now(),
            "stage": self.stage,
            "cause": next((name for kind, name in _CAUSES if isinstance(error, kind)), "harness"),
            "detail": str(error)[:8000] or type(error).__name__,
            "log_tail": list(self._subject.log_tail() if self._subject else ()),
        }
        self._bundle.document("records/interruption.json", document)
