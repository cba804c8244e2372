"""A container as the `Subject` that measuring knows, and what the run's bundle gets beside the usual files.

The orchestration asks for a container, measures it like any subject, and writes the record when the container is gone:

    record = ContainerRecord()
    with launched(order, record, clock) as (subject, found):
        ...measure `subject`; identity from the files at `found.model`; `image_of(found)` for run.json...
    for path, content in bundle_files(order, record, run_id).items(): ...

A `ContainerFault` ends the block; the record has it, and `bundle_files` works all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from qualification import strictjson
from qualification.bench.clock import Clock
from qualification.bench.target import parse_target
from qualification.capabilities import ask_capabilities
from qualification.container.record import ContainerRecord
from qualification.container.subject import ContainerOrder, ContainerSubject, container_subject
from qualification.subject import Subject

RECORD: Final = "records/container.json"
PARITY: Final = "records/parity.json"
_BESIDE: Final = {"sbom.cdx.json": "sbom/image.cdx.json", "provenance.json": "records/provenance.json"}


@contextmanager
def launched(
    order: ContainerOrder, record: ContainerRecord, clock: Clock
) -> Iterator[tuple[Subject, ContainerSubject]]:
    """A ready container, drilled, as a subject; its main process can be sampled like any other that this host sees.
    Its last lines can still be read when it is gone.

    Raises:
        ContainerFault: as `container_subject`.
    """
    with container_subject(order, record) as found:
        target, log = parse_target(found.url), KeptLog(found.log_tail)
        subject = Subject(
            kind="container",
            target=target,
            capabilities=ask_capabilities(target, clock),
            command=(),
            pid=found.pid if _seen(found.pid) else None,
            process=None,
            watch=found.alive,
            log=log.tail,
        )
        try:
            yield subject, found
        finally:
            log.keep()


def _seen(pid: int) -> bool:
    """Whether this host numbers processes as the engine does; one in a virtual machine has numbers of its own."""
    return Path(f"/proc/{pid}").exists()


class KeptLog:
    """Last lines that outlive their container."""

    def __init__(self, read: Callable[[], tuple[str, ...]]) -> None:
        self._read = read
        self._kept: tuple[str, ...] | None = None

    def tail(self) -> tuple[str, ...]:
        """The lines as they are, or as they were when the log was kept."""
        return self._read() if self._kept is None else self._kept

    def keep(self) -> None:
        """Read for the last time."""
        self._kept = self._read()


def image_of(found: ContainerSubject) -> dict[str, Any]:
    """The object `subject.image` of `run.json`."""
    chain = found.chain
    return {
        "name": found.reference.repository,
        "index": chain.index if chain else None,
        "platform": chain.platform if chain else None,
        "config": chain.config if chain else None,
    }


def bundle_files(order: ContainerOrder, record: ContainerRecord, run_id: str) -> dict[str, bytes]:
    """Bundle path -> bytes: the record, and for our own image its bill of materials and provenance."""
    files = {RECORD: strictjson.dumps(record.document(run_id))}
    if order.image is None and order.layout is not None:
        for name, path in _BESIDE.items():
            place = order.layout.parent / name
            if place.is_file():
                files[path] = place.read_bytes()
    return files
