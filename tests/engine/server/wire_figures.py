"""What the wire costs with the real engine: a server process with the embedded model, hostile clients, one JSON document.

    python -m tests.engine.server.wire_figures --out docs/measurements/cpu/wire.json

Wants an idle machine. Three parts, each bounded: a mix of clients that finish, cancel, leave, send rubbish and stop
reading, after which nothing may be left; one client alone, for cancellation and the waits that HTTP adds; a full server
under refusals, and whether those inside notice (`overload_figures`). Exit status 1 where something is left, an admitted
stream is cut short, or one starves under ten times the load and not without it.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.engine.server import overload_figures
from tests.engine.server.client import SPEECH, Wire, request_bytes, speech_bytes
from tests.engine.server.conftest import Process, eventually, launch
from tests.engine.server.soak import quantiles, run_threads, state_of

SLOTS = 6
WORKERS = 10
LONG = "The river is wide here, and the boats go slowly from one side to the other. " * 6
SHORT = "Good morning."
CLOSE = {"Connection": "close"}  # the end of an answer is the end of the connection
FLAGS = ("--max-concurrent-requests", str(SLOTS), "--request-read-seconds", "2", "--log-level", "warning")
POOLS = 4 + 2  # threads that submit and cancel, made when first wanted
MEMORY_ALLOWANCE = 24 * 1024 * 1024


def mixed(server: Process, chance: random.Random) -> str:
    """One client of the mix; returns what became of it."""
    request_id, kind = (
        str(uuid4()),
        chance.choices(("finish", "delete", "leave", "bad", "half"), (45, 15, 20, 12, 8))[0],
    )
    with Wire(server.address) as wire:
        if kind == "bad":
            wire.ask(request_bytes("POST", SPEECH, chance.choice((b"", b"{", b'{"text": 1}', b"[" * 5_000)))).whole()
            return f"refused {wire.status}"
        if kind == "half":
            whole = speech_bytes(SHORT)
            wire.send(whole[: chance.randrange(len(whole))])
            return "half-sent"
        seconds = chance.uniform(0.3, 1.6) if kind == "finish" else 20.0
        wire.ask(
            speech_bytes(
                SHORT if kind == "finish" else LONG,
                {"X-Request-Id": request_id},
                seed=chance.randrange(99),
                max_duration_seconds=seconds,
            )
        )
        if wire.status != 200:
            wire.whole()
            time.sleep(0.2)
            return str(wire.status)
        parts = wire.parts()
        next(parts)
        if kind == "leave":
            time.sleep(chance.random() / 4)
            return "left"
        if kind == "delete":
            next(parts)
            with Wire(server.address) as other:
                other.ask(request_bytes("DELETE", f"/v1/requests/{request_id}")).whole()
        last = list(parts)[-1].document
        return "deleted" if "error" in last else "finished"


def soak(server: Process, requests: int) -> tuple[dict[str, Any], list[str]]:
    """The mix, and what it left."""
    outcomes: Counter[str] = Counter()
    faults: list[str] = []

    def work(number: int) -> None:
        chance = random.Random(number)
        for _ in range(requests // WORKERS):
            try:
                outcomes[mixed(server, chance)] += 1
            except Exception as error:  # noqa: BLE001 - counted, and fails the run
                faults.append(repr(error))

    fresh = state_of(server)
    run_threads(WORKERS, work)  # the first pass warms pools and the allocator
    outcomes.clear()
    before = state_of(server)
    start = time.perf_counter()
    run_threads(WORKERS, work)
    took = time.perf_counter() - start
    after = state_of(server)
    faults += [f"{name} left" for name in ("active", "tombstones") if after[name]]
    faults += ["files grew"] if after["files"] > before["files"] else []
    faults += ["threads grew"] if after["threads"] > fresh["threads"] + POOLS else []
    if after["resident_bytes"] - before["resident_bytes"] > MEMORY_ALLOWANCE:
        faults.append("memory grew")
    return {
        "seconds": round(took, 1),
        "outcomes": dict(outcomes.most_common()),
        "fresh": fresh,
        "before": before,
        "after": after,
    }, faults


def overload(rounds: int) -> tuple[dict[str, Any], list[str]]:
    """Refusals, and what those inside notice of them: a server with a core of its own, as an operator would start it."""
    with overload_figures.on_core(0), serving(FLAGS[:2]) as server, overload_figures.on_core(1):
        return overload_figures.measure(server, slots=SLOTS, rounds=rounds)


def cancel_to_stop(server: Process, rounds: int) -> dict[str, Any]:
    """From sending DELETE until the error part has come, and the steps that the engine made after that."""
    waits, later = [], 0.0
    for number in range(rounds):
        request_id = str(uuid4())
        with Wire(server.address) as wire, Wire(server.address) as other:
            parts = wire.ask(
                speech_bytes(LONG, {"X-Request-Id": request_id}, seed=number, max_duration_seconds=20.0)
            ).parts()
            next(parts)
            next(parts)
            start = time.perf_counter()
            other.send(request_bytes("DELETE", f"/v1/requests/{request_id}"))
            last = list(parts)[-1]
            waits.append((time.perf_counter() - start) * 1e3)
            assert last.document["error"]["code"] == "request_cancelled"
            other.answer().whole()
        steps = server.metric("assay_engine_frame_steps_total")
        time.sleep(0.05)
        later += server.metric("assay_engine_frame_steps_total") - steps
    return {"rounds": rounds, "frame_steps_after": later, **quantiles(waits)}


def first_audio(server: Process, rounds: int) -> dict[str, Any]:
    """The client's wait for its first audio, and what of it is not the engine's own; one client on one connection."""
    heard, added = [], []
    with Wire(server.address) as wire:
        for number in range(rounds):
            start = time.perf_counter()
            parts = wire.ask(speech_bytes(SHORT, seed=number, max_duration_seconds=0.4)).parts()
            next(parts)
            next(parts)
            heard.append((time.perf_counter() - start) * 1e3)
            end = list(parts)[-1].document
            added.append(heard[-1] - end["metrics"]["first_audio_microseconds"] / 1e3)
    return {"rounds": rounds, "client": quantiles(heard), "added_by_http": quantiles(added)}


@contextmanager
def serving(flags: tuple[str, ...]) -> Iterator[Process]:
    """The embedded model behind a real server process, which must end cleanly."""
    with tempfile.TemporaryDirectory() as directory:
        server = launch(flags, Path(directory) / "server.log", module=("engine", "serve"))
        try:
            eventually(server.ready, 60)
            yield server
        finally:
            server.signal(signal.SIGTERM)
            exit_code = server.exit_code()
            server.close()
    assert exit_code == 0, f"the server ended with {exit_code}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--overload-rounds", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--out", type=Path, help="file for the document; else standard output")
    args = parser.parse_args()
    with serving(FLAGS) as server:
        report, failed = soak(server, args.requests)
        report["cancel_to_stop"] = cancel_to_stop(server, args.rounds)
        report["first_audio"] = first_audio(server, args.rounds)
        report["end"] = state_of(server)
    report["overload"], disturbed = overload(args.overload_rounds)
    failed += disturbed
    failed += ["steps after a cancellation"] if report["cancel_to_stop"]["frame_steps_after"] else []
    document = json.dumps({"command": " ".join(sys.orig_argv[1:]), **report, "failed": failed}, indent=2) + "\n"
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(document)
    print(document, end="")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
