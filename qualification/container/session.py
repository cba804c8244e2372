"""A run's dealings with its container: get an image, run it, compare with a bare process, and keep what it left.

    session = session_for(inputs, clock)
    with session.subject() as subject: ...identify `session.parts`, measure `subject`, `session.compare(...)`...
    session.files(run_id) -> what belongs into the bundle, whatever happened

A fault is in the record before it is raised, and its name opens the message.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from qualification import strictjson
from qualification.bench.clock import Clock
from qualification.container.distributions import metadata_of
from qualification.container.docker_engine import docker_engine
from qualification.container.faults import ContainerFault, FaultCode
from qualification.container.launch import PARITY, bundle_files, image_of, launched
from qualification.container.own_image import OwnImage
from qualification.container.parity import ParityPlan, measure_parity
from qualification.container.record import ContainerRecord
from qualification.container.subject import ContainerOrder, ContainerSubject
from qualification.errors import SubjectError
from qualification.identification import Parts
from qualification.inputs import Inputs
from qualification.paths import PINS, data_file
from qualification.subject import Subject, engine_command, started
from qualification.workload import WorkItem


class NoEngine(SubjectError):
    """There is no container engine here; the record says why."""


class ContainerSession:
    """One container: somebody else's `image` by digest, or our `own`."""

    def __init__(self, *, image: str | None, own: OwnImage | None, clock: Clock) -> None:
        self._own = own
        self._clock = clock
        self._order = ContainerOrder(image=image)
        self._record = ContainerRecord()
        self._found: ContainerSubject | None = None
        self._parity: dict[str, Any] | None = None
        self.image: dict[str, Any] | None = None
        self._metadata: Path | None = None

    @property
    def parts(self) -> Parts:
        """What the image is made of, copied out of it; there only as long as the subject."""
        model = self._found.model if self._found else None
        return Parts(model=model, metadata=(self._metadata,) if self._metadata else None)

    @contextmanager
    def subject(self) -> Iterator[Subject]:
        """The container as a subject, ready and drilled on entry, gone on exit.

        Raises:
            NoEngine: nothing can be run here.
            SubjectError: any other fault, by its name.
        """
        try:
            if self._own is not None:
                self._order = ContainerOrder(layout=self._built(self._own))
            with (
                launched(self._order, self._record, self._clock) as (subject, found),
                tempfile.TemporaryDirectory(prefix="assay-distributions-") as place,
            ):
                self._found, self.image = found, image_of(found)
                self._metadata = metadata_of(found.container, Path(place))
                yield subject
        except ContainerFault as fault:
            kind = NoEngine if fault.code is FaultCode.NO_ENGINE else SubjectError
            raise kind(f"{fault.code}: {fault}") from fault

    def compare(self, run_id: str, subject: Subject, items: Sequence[WorkItem]) -> None:
        """Speak by turns to our own container and to the same commit and model outside it; keep the raw rows.

        Raises:
            SubjectError: the bare process does not start.
        """
        model = self.parts.model
        if self._own is None or model is None:
            return
        command = engine_command(model=model, precision=None, device="cpu")
        with started(command, self._clock) as bare:
            self._parity = measure_parity(run_id, bare.target, subject.target, items, ParityPlan(), self._clock)

    def files(self, run_id: str) -> dict[str, bytes]:
        """Bundle path -> bytes: the record, and what there is of bill of materials, provenance and comparison."""
        files = bundle_files(self._order, self._record, run_id)
        return files if self._parity is None else {**files, PARITY: strictjson.dumps(self._parity)}

    def _built(self, own: OwnImage) -> Path:
        """The layout; the engine is asked for first, because building reads and fetches much before it needs one."""
        try:
            with docker_engine():
                pass
            return own.layout()
        except ContainerFault as fault:
            self._record.note(fault)
            raise


def session_for(inputs: Inputs, clock: Clock) -> ContainerSession | None:
    """The session that a run asks for; None where it asks for no container."""
    options = inputs.options
    if options.image is not None:
        return ContainerSession(image=options.image, own=None, clock=clock)
    if not options.container:
        return None
    assert inputs.model is not None  # `prepare` named one
    own = OwnImage(model=inputs.model, pins=options.pins or data_file(PINS), policy=inputs.policy)
    return ContainerSession(image=None, own=own, clock=clock)
