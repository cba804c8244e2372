"""The journal of a run that is not sealed yet: what a resumed run finds, and nothing that a sealed one keeps.

    journal/start.json          what was asked for, and the zero of the clock
    journal/events.jsonl        stages, sessions and phases in their order; each line is on disk before the run goes on
    journal/UNIT.jsonl          raw records of a unit (a round of a profile), a line as each request ends
    journal/UNIT.done.jsonl     the same under another name, once the unit has ended and its audio is stored
    journal/telemetry-NN.jsonl  one a session
    journal/lock                held by the process that writes

A unit is whole or it is not: one that was cut short is run again from its beginning. A line that the power failure tore
is left out and its bytes are counted. Who may resume, and what becomes of the halves, is the business of `resume`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from qualification import schema, strictjson
from qualification.bench.phases import Phase
from qualification.bench.raw import RequestRecord
from qualification.errors import BundleError
from qualification.paths import JOURNAL_DIRECTORY

START: Final = "start.json"
_EVENTS: Final = "events.jsonl"
_NOTHING: Final = {"stage": None, "pid": None, "pid_started": None, "phase": None, "unit": None, "path": None}
MOST_SESSIONS: Final = 99


@dataclass(frozen=True, kw_only=True, order=True)
class Unit:
    """What is run and repeated as a whole: one round of one profile, with its warm-up."""

    profile: str
    round: int

    @property
    def name(self) -> str:
        return f"{self.profile.lower()}-{self.round}"

    def __str__(self) -> str:
        return f"{self.profile}, round {self.round}"


def begun(unit: Unit) -> dict[str, Any]:
    """A unit of which nothing is there yet: the `unit` object of an event."""
    return {**asdict(unit), "requests": 0, "torn_bytes": 0, "path": None}


class Journal:
    """Reads and appends; only one process at a time. Raises `BundleError` where another one holds it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.directory = root / JOURNAL_DIRECTORY
        self._lock = hold(self.directory / "lock")
        self.start: Mapping[str, Any] = schema.load("journal", self.directory / START)
        self.events: list[dict[str, Any]] = []
        place = self.directory / _EVENTS
        if place.exists():
            lines, torn = whole_lines(place)
            self.events = [strictjson.loads(line, _EVENTS) for line in lines]
            for event in self.events:
                schema.validate("journal-event", event, f"{JOURNAL_DIRECTORY}/{_EVENTS}")
            os.truncate(place, place.stat().st_size - torn)
        self._stream = place.open("ab", buffering=0)

    @classmethod
    def create(cls, root: Path, start: Mapping[str, Any]) -> Journal:
        """Begin a journal in the directory of a new run."""
        schema.validate("journal", start, START)
        strictjson.write(root / JOURNAL_DIRECTORY / START, start)
        return cls(root)

    @property
    def session(self) -> int:
        """Number of the session that began last; 0 before the first."""
        return max((event["session"] for event in self.events), default=0)

    def log(self, event: str, **values: Any) -> None:
        """Append an event of this session (`begun` opens the next one); it is on disk on return."""
        number = self.session + (event == "begun")
        if number > MOST_SESSIONS:
            raise BundleError(f"{self.root}: {MOST_SESSIONS} sessions and still not sealed; begin a new run")
        line = {"event": event, "session": number, **_NOTHING, **values}
        schema.validate("journal-event", line, _EVENTS)
        self._stream.write(strictjson.dumps_line(line))
        os.fsync(self._stream.fileno())
        self.events.append(line)

    def phase(self, phase: Phase) -> None:
        """Log a phase that has ended."""
        self.log("phase", phase=asdict(phase))

    def of(self, event: str) -> list[dict[str, Any]]:
        """Events of one kind, in their order."""
        return [item for item in self.events if item["event"] == event]

    def pending(self, event: str) -> list[dict[str, Any]]:
        """Events of one kind since the subject was last started: what its next session record has to tell."""
        last = max((at for at, item in enumerate(self.events) if item["event"] == "subject"), default=-1)
        return [item for item in self.events[last + 1 :] if item["event"] == event]

    def ended_in_order(self) -> bool:
        """Whether the last session said that it had ended, and nothing began after; true before the first."""
        told = [event["event"] for event in self.events if event["event"] not in ("set_aside", "leftover")]
        return not told or told[-1] == "ended"

    def done(self, unit: Unit) -> bool:
        """Whether the unit is whole."""
        return self.done_file(unit).exists()

    def done_file(self, unit: Unit) -> Path:
        return self.directory / f"{unit.name}.done.jsonl"

    def records(self, unit: Unit) -> list[RequestRecord]:
        """Raw records of a unit that is whole; `audio` is null in all of them."""
        lines, torn = whole_lines(self.done_file(unit))
        if torn:
            raise BundleError(f"{unit}: its records end in a torn line; the run cannot be sealed, begin a new one")
        return [RequestRecord.from_json(strictjson.loads(line, unit.name)) for line in lines]

    def halves(self) -> list[Path]:
        """Records of units that are not whole."""
        kept = {START, _EVENTS}
        names = [path for path in sorted(self.directory.glob("*.jsonl")) if path.name not in kept]
        return [path for path in names if not path.name.endswith(".done.jsonl") and not _is_telemetry(path)]

    def phases(self) -> list[dict[str, Any]]:
        """Every phase so far; those of a unit that was cut short are told as what they were: something else."""
        logged = [(event["session"], event["phase"]) for event in self.of("phase")]
        last = {_unit_of(phase): session for session, phase in logged if phase["profile"] is not None}
        return [
            phase
            if phase["profile"] is None or (last[_unit_of(phase)] == session and self.done(_unit_of(phase)))
            else {**phase, "kind": "other", "name": f"cut short: {phase['name']}", "profile": None, "round": None}
            for session, phase in logged
        ]

    def telemetry(self, session: int) -> Path:
        """Where a session's telemetry goes."""
        return self.directory / f"telemetry-{session:02}.jsonl"

    def all_telemetry(self) -> list[bytes]:
        """Lines of telemetry over all sessions, in their order; a torn last line of a session is left out."""
        files = [self.telemetry(number) for number in range(1, self.session + 1)]
        return [line for path in files if path.exists() for line in whole_lines(path)[0]]

    def remove(self) -> None:
        """The run is sealed."""
        self.close()
        shutil.rmtree(self.directory)

    def close(self) -> None:
        """Let go of the lock."""
        self._stream.close()
        self._lock.close()


class UnitWriter:
    """The records of the unit in work, a line as each request ends, and a new name when the unit is whole."""

    def __init__(self, journal: Journal, unit: Unit) -> None:
        self._target = journal.done_file(unit)
        self._path = journal.directory / f"{unit.name}.jsonl"
        self._stream = self._path.open("xb", buffering=0)

    def append(self, record: RequestRecord) -> None:
        """One request has ended."""
        self._stream.write(strictjson.dumps_line(record.to_json()))

    def complete(self) -> None:
        """The unit has ended, and whatever belongs to it is on disk."""
        os.fsync(self._stream.fileno())
        self._stream.close()
        self._path.rename(self._target)
        _sync_directory(self._target.parent)

    def close(self) -> None:
        self._stream.close()


def whole_lines(path: Path) -> tuple[list[bytes], int]:
    """The lines of a file that end in a newline, and how many bytes come after the last of them."""
    *lines, tail = path.read_bytes().split(b"\n")
    return [line + b"\n" for line in lines], len(tail)


def hold(path: Path) -> BinaryIO:
    """The lock of a journal, held until it is closed. Raises `BundleError` where another process holds it."""
    if not path.parent.is_dir():
        raise BundleError(f"{path.parent.parent}: holds no journal of a run that could go on; begin a new run")
    stream = path.open("ab")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        stream.close()
        raise BundleError(f"{path.parent.parent}: another process is writing it; let it end, or stop it") from None
    return stream


def sync_file(path: Path) -> None:
    """Return when the content of a file is on disk."""
    with path.open("rb") as stream:
        os.fsync(stream.fileno())


def _unit_of(phase: Mapping[str, Any]) -> Unit:
    return Unit(profile=phase["profile"], round=phase["round"])


def _is_telemetry(path: Path) -> bool:
    return path.name.startswith("telemetry-") and path.stem.removeprefix("telemetry-").isdigit()


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
