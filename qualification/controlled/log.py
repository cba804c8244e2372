"""The journal of a comparison that is not sealed yet: what was asked for, and when each run began and ended.

    journal/start.json    what was asked for; holds paths of the machine
    journal/runs.jsonl    one line as a run begins, one as it ends; each is on disk before the comparison goes on

The measurements lie in the two bundles, each with a journal of its own. Both journals go when all is sealed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from qualification import schema, strictjson
from qualification.errors import BundleError
from qualification.journal import hold, whole_lines
from qualification.paths import JOURNAL_DIRECTORY

_START: Final = "start.json"
_RUNS: Final = "runs.jsonl"


class RunLog:
    """Reads and appends; only one process at a time."""

    def __init__(self, root: Path) -> None:
        self._directory = root / JOURNAL_DIRECTORY
        self.start = read_start(root)
        self._lock = hold(self._directory / "lock")
        place = self._directory / _RUNS
        lines, torn = whole_lines(place) if place.exists() else ([], 0)
        self.events: list[dict[str, Any]] = [strictjson.loads(line, _RUNS) for line in lines]
        for event in self.events:
            schema.validate("controlled-event", event, _RUNS)
        if torn:
            os.truncate(place, place.stat().st_size - torn)
        self._stream = place.open("ab", buffering=0)

    @classmethod
    def create(cls, root: Path, start: Mapping[str, Any]) -> RunLog:
        """Begin the journal of a new comparison."""
        schema.validate("controlled-start", start, _START)
        strictjson.write(root / JOURNAL_DIRECTORY / _START, start)
        return cls(root)

    def began(self, number: int, **values: Any) -> None:
        """A run begins."""
        self._append({"event": "began", "run": number, "outcome": None, "detail": None, **values})

    def ended(self, number: int, outcome: str, **values: Any) -> None:
        """The run that began last has ended."""
        self._append({"event": "ended", "run": number, "outcome": outcome, "load_average": None, **values})

    def attempts(self, number: int) -> list[dict[str, Any]]:
        """Everything that was tried for one planned run, in order; the last one may not have ended yet."""
        found: list[dict[str, Any]] = []
        for event in self.events:
            if event["run"] != number:
                continue
            if event["event"] == "began":
                started = {"started_utc": event["at_utc"], "started_ns": event["at_ns"]}
                found.append({**_UNENDED, **started, **{key: event[key] for key in ("session", "load_average")}})
            else:
                ended = {"ended_utc": event["at_utc"], "ended_ns": event["at_ns"]}
                found[-1] |= {**ended, "outcome": event["outcome"], "detail": event["detail"]}
        return found

    def remove(self) -> None:
        """All is sealed."""
        self.close()
        shutil.rmtree(self._directory)

    def close(self) -> None:
        """Let go of the lock."""
        self._stream.close()
        self._lock.close()

    def _append(self, event: Mapping[str, Any]) -> None:
        schema.validate("controlled-event", event, _RUNS)
        self._stream.write(strictjson.dumps_line(event))
        os.fsync(self._stream.fileno())
        self.events.append(dict(event))


def read_start(root: Path) -> dict[str, Any]:
    """What the comparison in a directory was asked for.

    Raises:
        BundleError: there is none that could go on.
    """
    place = root / JOURNAL_DIRECTORY / _START
    if not place.is_file():
        why = (
            "it is sealed already" if (root / "manifest.json").exists() else f"it holds no {JOURNAL_DIRECTORY}/{_START}"
        )
        raise BundleError(f"{root} is no comparison that can go on: {why}; begin a new one")
    document: dict[str, Any] = schema.load("controlled-start", place)
    return document


_UNENDED: Final[Mapping[str, Any]] = {"outcome": "killed", "ended_utc": None, "ended_ns": None, "detail": None}
