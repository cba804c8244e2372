"""May this run go on in that directory, and what becomes of what a session left behind?

A run goes on only as the run that it was: same policy, pins, workload, plan, subject, source and harness, checked here
before anything is touched; same model, licences and machine, checked when they are read again. Whole units stay. A unit
that was cut short goes to `abandoned/NN/` with the number of its session and is run again; what a seal had begun to
derive is removed, because it is derived again; anything else that a session left is set aside too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psutil

from qualification import paths, schema, strictjson
from qualification.bench.clock import Clock
from qualification.bench.phases import utc_now
from qualification.bench.profiles import PLAN
from qualification.digest import sha256_bytes
from qualification.errors import BundleError, ResumeRefused
from qualification.inputs import Inputs, options_json
from qualification.journal import Journal, Unit, whole_lines
from qualification.run_record import harness
from qualification.source_state import SourceState

_SAME: Final = (
    "endpoint", "precision", "device", "engine_command", "image", "container", "accept_symlinks", "gates",
    "rounds", "eos_rate", "sampling",
)  # fmt: skip
_KEPT: Final = re.compile(
    r"(policy|pins|workload|identity|licences|environment)\.json|records/(session|sampler|fleet|interruption)-\d\d\.json"
    rf"|logs/.+|({paths.JOURNAL_DIRECTORY}|{paths.ABANDONED_DIRECTORY})/.+"
)
_DERIVED: Final = re.compile(
    r"(run|phases|gates|summary|manifest|statement\.dsse)\.json|telemetry\.jsonl|report\.html|samples/.+"
)
_LARGEST_DRIFT_SECONDS: Final = 1.0
_STOP_SECONDS: Final = 35.0


def start_document(inputs: Inputs, source: SourceState, clock: Clock) -> dict[str, Any]:
    """The document `journal/start.json` of a new run."""
    zero = datetime.now(UTC).timestamp() - clock.now_ns() / 1e9
    return {
        "schema": schema.urn("journal"),
        "run_id": inputs.run_id,
        "started_utc": utc_now(),
        "zero_ns": clock.zero_ns,
        "zero_utc": datetime.fromtimestamp(zero, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "source": source.to_json(),
        "harness": harness(),
        "inputs": _digests(inputs),
        "options": options_json(inputs.options),
    }


def reopened(inputs: Inputs, source: SourceState) -> Journal:
    """The journal of the run that `inputs` would go on with.

    Raises:
        ResumeRefused: something is not what it was; nothing has been touched.
        BundleError: no journal there, or somebody else holds it.
    """
    journal = Journal(inputs.out)
    try:
        found = list(_differences(journal.start, inputs, source))
        if found:
            raise refusal(inputs.out, found)
    except ResumeRefused:
        journal.close()
        raise
    return journal


def refusal(out: Path, found: Sequence[str]) -> ResumeRefused:
    """The error that names every difference and the way out."""
    return ResumeRefused(
        f"{out} cannot go on: {'; '.join(found)}. Bring back what it was begun with (with --resume alone nothing needs to "
        "be given again), or begin a new run; what was gathered stays where it is"
    )


def clock_of(journal: Journal) -> tuple[Clock, str]:
    """The run's clock, and whether it went on (`continued`) or was set by the calendar (`wall`) after a restart.

    Raises:
        ResumeRefused: the calendar stands before the end of what was recorded.
    """
    clock = Clock(zero_ns=journal.start["zero_ns"])
    zero = datetime.fromisoformat(journal.start["zero_utc"]).timestamp()
    passed = datetime.now(UTC).timestamp() - zero
    if abs(passed - clock.now_ns() / 1e9) <= _LARGEST_DRIFT_SECONDS:
        return clock, "continued"
    clock = Clock(zero_ns=Clock(zero_ns=0).now_ns() - int(passed * 1e9))
    last = max((event["phase"]["end_ns"] for event in journal.of("phase")), default=0)
    if clock.now_ns() <= last:
        raise refusal(
            journal.root, ["the machine's calendar stands before the end of what was recorded; set its clock"]
        )
    return clock, "wall"


def recover(journal: Journal) -> None:
    """Clear up after the last session: stop its subject, say that it was killed, set aside what is not whole."""
    root, number = journal.root, journal.session
    _stop_orphan(journal)
    word = root / f"records/interruption-{number:02}.json"
    if not journal.ended_in_order() and not word.exists():
        strictjson.write(word, _killed(journal))
    for path in sorted(journal.halves()):
        _set_aside_unit(journal, path, number)
    whole = {record.request_id for unit in _whole(journal) for record in journal.records(unit)}
    for name in paths.walk(root).files:
        if _DERIVED.fullmatch(name):
            (root / name).unlink()
        elif not _KEPT.fullmatch(name) and Path(name).stem not in whole:
            target = f"{paths.ABANDONED_DIRECTORY}/{number:02}/{name}"
            if target not in [event["path"] for event in journal.pending("leftover")]:
                journal.log("leftover", path=target)
            _move(root / name, root / target)
    _remove_empty(root)


def _differences(start: Mapping[str, Any], inputs: Inputs, source: SourceState) -> Iterator[str]:
    for name, digest in _digests(inputs).items():
        if digest != start["inputs"][name]:
            yield f"the {name} is another one (SHA-256 {digest[:12]}, it was {start['inputs'][name][:12]})"
    options = options_json(inputs.options)
    for name in _SAME:
        if options[name] != start["options"][name]:
            yield f"--{name.replace('_', '-')} is {options[name]!r}, it was {start['options'][name]!r}"
    if source.to_json() != start["source"]:
        yield f"the source is {_said(source.to_json())}, it was {_said(start['source'])}"
    if harness() != start["harness"]:
        yield f"the harness is {harness()['version']}, it was {start['harness']['version']}"


def _said(source: Mapping[str, Any]) -> str:
    state = {True: "with uncommitted changes", False: "clean", None: "of unknown state"}[source["dirty"]]
    return f"commit {(source['commit'] or 'unknown')[:12]}, {state}"


def _digests(inputs: Inputs) -> dict[str, str]:
    plan = inputs.options.plan or paths.data_file(PLAN)
    documents = {
        "policy": inputs.policy.document,
        "pins": inputs.pins.document,
        "workload": inputs.workload.document,
        "plan": strictjson.load(plan),
    }
    return {name: sha256_bytes(strictjson.dumps(document)) for name, document in documents.items()}


def _killed(journal: Journal) -> dict[str, Any]:
    stages = [event["stage"] for event in journal.of("stage") if event["session"] == journal.session]
    return {
        "schema": schema.urn("interruption"),
        "run_id": journal.start["run_id"],
        "number": journal.session,
        "at_utc": utc_now(),
        "stage": stages[-1] if stages else "identify",
        "cause": "killed",
        "detail": "The session left no word of its end: it was killed, or the machine stopped. Noticed when the run went on.",
        "log_tail": [],
    }


def _set_aside_unit(journal: Journal, path: Path, number: int) -> None:
    """Logged before it is moved, so that a stop in between leaves nothing unnamed."""
    lines, torn = whole_lines(path)
    profile, _, turn = path.stem.rpartition("-")
    began = [event["unit"] for event in journal.of("unit")]
    unit = next(item for item in reversed(began) if (item["profile"].lower(), str(item["round"])) == (profile, turn))
    target = f"{paths.ABANDONED_DIRECTORY}/{number:02}/{path.name}" if lines else None
    unit = {**unit, "requests": len(lines), "torn_bytes": torn, "path": target}
    if unit not in [event["unit"] for event in journal.pending("set_aside")]:
        journal.log("set_aside", unit=unit)
    if target is None:
        path.unlink()
        return
    os.truncate(path, path.stat().st_size - torn)
    _move(path, journal.root / target)


def _whole(journal: Journal) -> list[Unit]:
    units = [Unit(profile=item["unit"]["profile"], round=item["unit"]["round"]) for item in journal.of("unit")]
    return [unit for unit in dict.fromkeys(units) if journal.done(unit)]


def _move(source: Path, target: Path) -> None:
    if target.exists():
        raise BundleError(f"{target} exists already; nothing is written over, begin a new run")
    target.parent.mkdir(parents=True, exist_ok=True)
    source.rename(target)


def _remove_empty(root: Path) -> None:
    for directory, _, _ in os.walk(root, topdown=False):
        with suppress(OSError):
            Path(directory).rmdir()


def _stop_orphan(journal: Journal) -> None:
    """A subject outlives a harness that was killed; left alone it would load the machine that measures its successor."""
    for event in journal.of("subject")[-1:]:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(event["pid"]) if event["pid"] is not None else None
            if process is None or abs(process.create_time() - event["pid_started"]) > 0.5:
                return
            process.terminate()
            _, alive = psutil.wait_procs([process], timeout=_STOP_SECONDS)
            for left in alive:
                left.kill()
