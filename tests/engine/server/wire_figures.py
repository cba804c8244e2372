"""What the wire costs with the real engine: a server process with the embedded model, hostile clients, one JSON document.

    python -m tests.engine.server.wire_figures --out docs/measurements/cpu/wire.json

Wants an idle machine. Three parts, each bounded: a mix of clients that finish, cancel, leave, send rubbish and stop
reading, after which nothing may be left; ten clients a slot against a full server, and whether those inside notice;
one client alone, for the waits that HTTP adds. Exit status 1 where something is left or a held stream is disturbed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.engine.server.client import SPEECH, Wire, request_bytes, speech_bytes
from tests.engine.server.conftest import Process, eventually, launch
from tests.engine.server.soak import quantiles, run_threads, state_of

SLOTS = 6
WORKERS = 10
LONG = "The river is wide here, and the boats go slowly from one side to the other. " * 6
SENTENCE = "The boats go slowly from one side to the other."
SHORT = "Good morning."
CLOSE = {"Connection": "close"}  # the end of an answer is the end of the connection
FLAGS = ("--max-concurrent-requests", str(SLOTS), "--request-read-seconds", "2", "--log-level", "warning")
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

    run_threads(WORKERS, work)  # the first pass warms pools and the allocator
    outcomes.clear()
    before = state_of(server)
    start = time.perf_counter()
    run_threads(WORKERS, work)
    took = time.perf_counter() - start
    after = state_of(server)
    faults += [f"{name} left" for name in ("active", "tombstones") if after[name]]
    faults += [f"{name} grew" for name in ("files", "threads") if after[name] > before[name]]
    if after["resident_bytes"] - before["resident_bytes"] > MEMORY_ALLOWANCE:
        faults.append("memory grew")
    return {
        "seconds": round(took, 1),
        "outcomes": dict(outcomes.most_common()),
        "before": before,
        "after": after,
    }, faults


async def held(address: tuple[str, int], until: float, crowd: int) -> tuple[float, list[float], Counter[str]]:
    """Audio seconds a second of all who are admitted, and the waits of those of `crowd` clients that are refused."""
    waits: list[float] = []
    statuses: Counter[str] = Counter()
    samples = 0

    async def hold(number: int) -> None:
        nonlocal samples
        while time.perf_counter() < until:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(speech_bytes(SENTENCE, CLOSE, seed=number, max_duration_seconds=20.0))
            status = (await reader.readuntil(b"\r\n\r\n"))[9:12].decode()
            if status != "200":  # one of the crowd took the slot between two streams
                statuses[f"holder {status}"] += 1
                await asyncio.sleep(0.05)
            while status == "200" and time.perf_counter() < until and (data := await reader.read(65_536)):
                samples += len(data) // 2
            writer.close()

    async def ask(number: int) -> None:
        nonlocal samples
        await asyncio.sleep(1.0 + number / (10.0 * crowd))
        while time.perf_counter() < until:
            reader, writer = await asyncio.open_connection(*address)
            start = time.perf_counter()
            writer.write(speech_bytes(SENTENCE, CLOSE, seed=number, max_duration_seconds=20.0))
            head = await reader.readuntil(b"\r\n\r\n")
            if size := re.search(rb"content-length: (\d+)", head):
                await reader.readexactly(int(size[1]))
            statuses[head[9:12].decode()] += 1
            if head.startswith(b"HTTP/1.1 429"):
                assert b"retry-after:" in head.lower()
                waits.append((time.perf_counter() - start) * 1e3)
            elif head.startswith(b"HTTP/1.1 200"):  # a slot fell free between two streams: admitted like anybody
                while time.perf_counter() < until and (data := await reader.read(65_536)):
                    samples += len(data) // 2
            writer.close()
            await asyncio.sleep(0.1)

    began = time.perf_counter()
    await asyncio.gather(*(hold(number) for number in range(SLOTS)), *(ask(number) for number in range(crowd)))
    return samples / 24_000 / (time.perf_counter() - began), waits, statuses


def overload(server: Process, seconds: float) -> dict[str, Any]:
    """Throughput of a full server, alone and with ten clients a slot before the door."""
    alone, _, _ = asyncio.run(held(server.address, time.perf_counter() + seconds, 0))
    eventually(lambda: server.metric("assay_active_requests") == 0, 30)
    besieged, waits, statuses = asyncio.run(held(server.address, time.perf_counter() + seconds, 10 * SLOTS))
    eventually(lambda: server.metric("assay_active_requests") == 0, 30)
    return {
        "clients": 10 * SLOTS, "answers": dict(statuses), "refusal": quantiles(waits), "refusals": len(waits),
        "audio_seconds_a_second": {"alone": round(alone, 3), "besieged": round(besieged, 3)},
    }  # fmt: skip


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


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--overload-seconds", type=float, default=15.0)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--out", type=Path, help="file for the document; else standard output")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        server = launch(FLAGS, Path(directory) / "server.log", module=("engine", "serve"))
        try:
            eventually(server.ready, 60)
            report, failed = soak(server, args.requests)
            report["overload"] = overload(server, args.overload_seconds)
            report["cancel_to_stop"] = cancel_to_stop(server, args.rounds)
            report["first_audio"] = first_audio(server, args.rounds)
            report["end"] = state_of(server)
        finally:
            server.signal(signal.SIGTERM)
            report_exit = server.exit_code()
            server.close()
    failed += [f"the server ended with {report_exit}"] if report_exit else []
    failed += ["steps after a cancellation"] if report["cancel_to_stop"]["frame_steps_after"] else []
    document = json.dumps({"command": " ".join(sys.orig_argv[1:]), **report, "failed": failed}, indent=2) + "\n"
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(document)
    print(document, end="")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
