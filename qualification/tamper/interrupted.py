"""Tampers with a run that was interrupted and went on: sessions, early ends and what was set aside.

The good bundle is first made one that was killed in its last profile and resumed, with everything told as a real run
tells it; then one thing of that is changed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any, Final

from qualification import paths, schema, strictjson
from qualification.digest import sha256_bytes
from qualification.sessions import interruption_path, session_path
from qualification.tamper.bench import Bench, find
from qualification.tamper.changes import B6, MS, Tamper, case, document
from qualification.tamper.good_documents import utc

FIRST: Final = session_path(1)
SECOND: Final = session_path(2)
END: Final = interruption_path(1)
HALF: Final = f"{paths.ABANDONED_DIRECTORY}/01/b6-0.jsonl"
_KEPT: Final = 2


def interrupt(bench: Bench) -> None:
    """Make the bundle one that was killed in B6 after two requests of its warm-up, and resumed."""
    run_id = bench.read(paths.RUN)["run_id"]
    began = find(bench.read(paths.PHASES)["phases"], profile="B6", kind="warmup")["start_ns"]
    lines = strictjson.loads_lines((bench.root / B6).read_bytes(), B6)
    half = [_again(line) for line in lines if line["phase"] == "warmup"][:_KEPT]
    bench.replace(HALF, b"".join(strictjson.dumps_line(line) for line in half))
    end = {
        "schema": schema.urn("interruption"), "run_id": run_id, "number": 1, "at_utc": utc(began), "stage": "measure",
        "cause": "killed", "detail": "The session left no word of its end.", "log_tail": [],
    }  # fmt: skip
    bench.replace(END, strictjson.dumps(end))
    unit = {"profile": "B6", "round": 0, "requests": _KEPT, "torn_bytes": 0, "path": HALF}
    again = {"number": 2, "reason": "resume", "started_ns": began, "ready_ns": began, "started_utc": utc(began)}
    bench.replace(SECOND, strictjson.dumps({**bench.read(FIRST), **again, "set_aside": [unit]}))
    bench.edit(paths.RUN, lambda run: run.update(sessions=2))


def _again(line: dict[str, Any]) -> dict[str, Any]:
    """The same request as it was before it was run again, under its own id."""
    digits = sha256_bytes(line["request_id"].encode())
    name = f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:32]}"
    return {**line, "request_id": name, "audio": None}


def _then(change: Callable[[Bench], object]) -> Callable[[Bench], None]:
    def both(bench: Bench) -> None:
        interrupt(bench)
        change(bench)

    return both


def _unit(**values: Any) -> Callable[[Bench], None]:
    return _then(document(SECOND, lambda session: session["set_aside"][0].update(values)))


def _session(**values: Any) -> Callable[[Bench], None]:
    return _then(document(SECOND, lambda session: session.update(values)))


def _mix(bench: Bench) -> None:
    """A request of the half is let count in the place of the one that was run again."""
    half = strictjson.loads_lines((bench.root / HALF).read_bytes(), HALF)
    bench.edit_lines(B6, lambda lines: lines.__setitem__(0, {**lines[0], "request_id": half[0]["request_id"]}))


def _lose(bench: Bench) -> None:
    shutil.rmtree(bench.root / paths.ABANDONED_DIRECTORY)


def _drop_second(bench: Bench) -> None:
    (bench.root / SECOND).unlink()


INTERRUPTED: Final[tuple[Tamper, ...]] = (
    case("what was set aside removed", "abandoned.unnamed", _then(_lose)),
    case("what was set aside no longer named", "abandoned.unnamed", _session(set_aside=[])),
    case("a file set aside that nobody names", "abandoned.unnamed", lambda b: b.replace("abandoned/01/note.txt", b"x")),
    case("a request that was set aside taken out", "abandoned.count",
         _then(lambda b: b.edit_lines(HALF, lambda lines: lines.pop()))),
    case("fewer requests said to be set aside", "abandoned.count", _unit(requests=1)),
    case("set aside under another round", "abandoned.count", _unit(round=1)),
    case("a request that was set aside counts", "abandoned.mixed", _then(_mix)),
    case("an early end taken out", "session.reason", _then(lambda b: (b.root / END).unlink())),
    case("a resumed session called a turn", "session.reason", _session(reason="turn")),
    case("the session after an early end taken out", "session.number", _then(_drop_second)),
    case("a session that the run does not count", "session.number",
         _then(document(paths.RUN, lambda run: run.update(sessions=1)))),
    case("no record of any session", "session.number", lambda b: shutil.rmtree(b.root / "records")),
    case("a session under another number", "session.number", document(FIRST, lambda session: session.update(number=2))),
    case("a session ready before it began", "session.order", _session(ready_ns=0)),
    case("a session that begins before the one before", "session.order", _session(started_ns=0, ready_ns=MS)),
    case("a unit across two sessions", "session.phase",
         _then(document(SECOND, lambda session: session.update(
             started_ns=session["started_ns"] + MS, ready_ns=session["ready_ns"] + MS)))),
    case("a session of another subject", "session.subject",
         _then(document(SECOND, lambda session: session["subject"].update(precision="int8")))),
)  # fmt: skip
