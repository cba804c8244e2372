"""What a session of a run leaves in the bundle: its record, word of its end before time, and what it must find again.

Pure functions over documents; when they are written is the business of `run`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from qualification.bench.phases import utc_now
from qualification.errors import BundleError, InputError, SigningError, SubjectError, UsageError
from qualification.journal import Journal
from qualification.schema import urn

_CAUSES: Final = (
    (UsageError, "usage"),
    (InputError, "input"),
    (SubjectError, "subject"),
    (BundleError, "bundle"),
    (SigningError, "signing"),
    (KeyboardInterrupt, "interrupted"),
)
_CHANGES_ALL_THE_TIME: Final = frozenset(
    {
        "captured_utc", "run_id", "load_average", "memory_available_bytes", "memory_used_bytes", "throttle_reasons",
        "competing_processes", "competing_memory_bytes", "decided_on",
    }
)  # fmt: skip


def session_path(number: int) -> str:
    """Where the record of a session lies."""
    return f"records/session-{number:02}.json"


def interruption_path(number: int) -> str:
    """Where the word of a session's early end lies."""
    return f"records/interruption-{number:02}.json"


def sampler_path(number: int) -> str:
    """Where the record of a session's telemetry process lies."""
    return f"records/sampler-{number:02}.json"


def session_document(
    journal: Journal,
    *,
    began: tuple[str, int],
    ready_ns: int,
    clock: str,
    subject: Mapping[str, Any],
    max_duration_seconds: float,
    load: Any,
) -> dict[str, Any]:
    """The record of the journal's last session; `began` is the moment in UTC and on the run's clock."""
    number = journal.session
    return {
        "schema": urn("session"),
        "run_id": journal.start["run_id"],
        "number": number,
        "reason": _reason(journal),
        "started_utc": began[0],
        "started_ns": began[1],
        "ready_ns": ready_ns,
        "clock": clock,
        "subject": dict(subject),
        "max_duration_seconds": max_duration_seconds,
        "load_average": load,
        "set_aside": [event["unit"] for event in journal.pending("set_aside")],
        "leftovers": [event["path"] for event in journal.pending("leftover")],
    }


def interruption_document(
    journal: Journal, *, stage: str, error: BaseException, log: tuple[str, ...]
) -> dict[str, Any]:
    """The last word of the journal's last session."""
    return {
        "schema": urn("interruption"),
        "run_id": journal.start["run_id"],
        "number": journal.session,
        "at_utc": utc_now(),
        "stage": stage,
        "cause": next((name for kind, name in _CAUSES if isinstance(error, kind)), "harness"),
        "detail": str(error)[:8000] or type(error).__name__,
        "log_tail": list(log),
    }


def changed(then: Any, now: Any, place: str = "") -> Iterator[str]:
    """Where two documents differ, but for what changes all the time: `place: now, it was then`."""
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        for key in sorted((then.keys() | now.keys()) - _CHANGES_ALL_THE_TIME):
            yield from changed(then.get(key), now.get(key), f"{place}.{key}" if place else key)
    elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        for number, (left, right) in enumerate(zip(then, now, strict=True)):
            yield from changed(left, right, f"{place}[{_name(left, number)}]")
    elif then != now:
        yield f"{place} is {_short(now)}, it was {_short(then)}"


def same_subject(session: Mapping[str, Any]) -> dict[str, Any]:
    """What must be the same in every session's record: the subject and its ceiling, but not the port that it was given."""
    subject = session["subject"]
    kept = {key: value for key, value in subject.items() if key != "endpoint" or subject["kind"] == "endpoint"}
    return {**kept, "max_duration_seconds": session["max_duration_seconds"]}


def _reason(journal: Journal) -> str:
    number = journal.session
    if number == 1:
        return "first"
    in_order = any(event["session"] == number - 1 for event in journal.of("ended"))
    return "turn" if in_order else "resume"


def _name(item: Any, number: int) -> str:
    return str(item.get("name") or item.get("path") or number) if isinstance(item, Mapping) else str(number)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
