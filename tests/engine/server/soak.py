"""Soak and overload of a real server process with the fake engine, by hostile clients; prints one JSON document.

    python -m tests.engine.server.soak --requests 3000 --overload-seconds 5

The mix: finished streams and WAVs, DELETEs, disconnects before and during audio, bad bodies, half-sent bodies, readers
that stop. Afterwards nothing may be left: slots, threads, files, memory. Exit status 1 where something is.
Traffic goes to the loopback address alone, and every loop is bounded.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import re
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

from tests.engine.server.client import SPEECH, Wire, request_bytes, speech_bytes
from tests.engine.server.conftest import Process, eventually, launch

SLOTS = 6
WORKERS = 12
FRAME_SECONDS = 0.002
CALM_FRAME_SECONDS = 0.02  # four times real time, for the latencies
THREADS = 1 + 1 + 4 + 2  # loop, fake engine, submitting, cancelling
MEMORY_ALLOWANCE = 6 * 1024 * 1024
FLAGS = (
    "--slots", str(SLOTS), "--slow-reader-seconds", "0.5",
    "--request-read-seconds", "1", "--keep-alive-seconds", "2", "--log-level", "warning",
)  # fmt: skip


# --- the clients ---


def finish(server: Process, chance: random.Random) -> str:
    with Wire(server.address) as wire:
        wire.ask(speech_bytes(f"frames={chance.randint(1, 20)}", stream=chance.random() < 0.7))
        if wire.status != 200:
            return str(wire.status)
        wire.whole()
        return "finished"


def delete(server: Process, chance: random.Random) -> str:
    request_id = str(uuid4())
    with Wire(server.address) as wire, Wire(server.address) as other:
        wire.ask(speech_bytes("frames=1000", {"X-Request-Id": request_id}))
        if wire.status != 200:
            return str(wire.status)
        parts = wire.parts()
        for _ in range(chance.randint(1, 4)):
            next(parts)
        other.ask(request_bytes("DELETE", f"/v1/requests/{request_id}")).whole()
        assert list(parts)[-1].document["error"]["code"] == "request_cancelled"
        return "deleted"


def disconnect(server: Process, chance: random.Random) -> str:
    with Wire(server.address) as wire:
        wire.send(speech_bytes("frames=1000", stream=chance.random() < 0.7))
        time.sleep(chance.random() * 0.03)
    return "disconnected"


def bad_body(server: Process, chance: random.Random) -> str:
    bodies = (b"", b"{", b'{"text": 1}', b'{"text": "a", "text": "b"}', b"[" * 5_000, b"\xff" * 100)
    with Wire(server.address) as wire:
        wire.ask(request_bytes("POST", SPEECH, chance.choice(bodies))).whole()
        return f"refused {wire.status}"


def half_body(server: Process, chance: random.Random) -> str:
    whole = speech_bytes()
    with Wire(server.address) as wire:
        wire.send(whole[: chance.randrange(len(whole))])
    return "half-sent"


def stop_reading(server: Process, _: random.Random) -> str:
    with Wire(server.address, receive_buffer=4_096) as wire:
        wire.send(speech_bytes("frames=1400"))
        time.sleep(0.7)
    return "stopped reading"


CLIENTS: tuple[tuple[Callable[[Process, random.Random], str], int], ...] = (
    (finish, 50), (delete, 12), (disconnect, 15), (bad_body, 12), (half_body, 8), (stop_reading, 3),
)  # fmt: skip


def crowd(server: Process, requests: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Send `requests` requests from a few threads; returns what became of them and what went wrong."""
    outcomes: Counter[str] = Counter()
    faults: list[str] = []
    lock = threading.Lock()

    def work(number: int) -> None:
        chance = random.Random(seed * 1_000 + number)
        for _ in range(requests // WORKERS):
            (client,) = chance.choices([entry[0] for entry in CLIENTS], [entry[1] for entry in CLIENTS])
            try:
                outcome = client(server, chance)
            except Exception as error:  # noqa: BLE001 - counted, and fails the soak
                outcome = f"fault: {client.__name__}: {error!r}"
                faults.append(outcome)
            with lock:
                outcomes[outcome] += 1

    run_threads(WORKERS, work)
    return outcomes, faults


def run_threads(count: int, work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# --- the measurements ---


def state_of(server: Process) -> dict[str, int]:
    """Slots, connections' files, threads and resident bytes of the quiet server."""
    eventually(lambda: server.metric("assay_active_requests") == 0, 20)
    active, tombstones = (int(server.metric(f"assay_{name}")) for name in ("active_requests", "tombstones"))
    time.sleep(3)  # keep-alive and flush deadlines pass, and the connections of these very questions are gone
    process = Path(f"/proc/{server.process.pid}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    return {
        "active": active,
        "tombstones": tombstones,
        "files": len(list((process / "fd").iterdir())),
        "threads": int(status["Threads"]),
        "resident_bytes": int(status["VmRSS"].split()[0]) * 1024,
        "peak_resident_bytes": int(status["VmHWM"].split()[0]) * 1024,
    }


def overload(server: Process, seconds: float) -> dict[str, float]:
    """Ten clients a slot ask ten times a second while every slot is held; the wait for each 429, in milliseconds."""
    waits, other = asyncio.run(_overload(server.address, seconds))
    return {"clients": 10 * SLOTS, "refused": len(waits), "other": other, **quantiles(waits)}


async def _overload(address: tuple[str, int], seconds: float) -> tuple[list[float], int]:
    """One thread, one loop: the clients' own waits for a processor would otherwise be measured too."""
    waits: list[float] = []
    statuses: Counter[bytes] = Counter()
    until = time.perf_counter() + seconds

    async def hold() -> None:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(speech_bytes("frames=1400"))
        while time.perf_counter() < until:
            assert await reader.read(65_536), "a held stream was disturbed"
        writer.close()

    async def ask(number: int) -> None:
        reader, writer = await asyncio.open_connection(*address)
        await asyncio.sleep(0.5 + number / (100 * SLOTS))
        while time.perf_counter() < until:
            start = time.perf_counter()
            writer.write(speech_bytes("frames=2"))
            head = await reader.readuntil(b"\r\n\r\n")
            size = re.search(rb"content-length: (\d+)", head)
            await reader.readexactly(int(size[1]) if size else 0)
            if head.startswith(b"HTTP/1.1 429"):
                waits.append((time.perf_counter() - start) * 1e3)
            else:
                statuses[head[9:12]] += 1
                assert size, "a client beyond the slots was admitted"
            await asyncio.sleep(0.1)
        writer.close()

    await asyncio.gather(*(hold() for _ in range(SLOTS)), *(ask(number) for number in range(10 * SLOTS)))
    return waits, statuses.total()


def cancel_to_stop(server: Process, rounds: int) -> dict[str, float]:
    """From sending a DELETE until the cancelled stream's error part has arrived, in milliseconds."""
    waits = []
    for _ in range(rounds):
        request_id = str(uuid4())
        with Wire(server.address) as wire, Wire(server.address) as other:
            parts = wire.ask(speech_bytes("frames=1400", {"X-Request-Id": request_id})).parts()
            for _ in range(3):
                next(parts)
            start = time.perf_counter()
            other.send(request_bytes("DELETE", f"/v1/requests/{request_id}"))
            last = list(parts)[-1]
            waits.append((time.perf_counter() - start) * 1e3)
            assert last.document["error"]["code"] == "request_cancelled"
            other.answer().whole()
    return {"rounds": rounds, **quantiles(waits)}


def first_audio_overhead(server: Process, rounds: int) -> dict[str, float]:
    """Client's wait for the first audio part less the engine's own first audio, in milliseconds; one client."""
    waits = []
    wire = Wire(server.address)
    for _ in range(rounds):
        start = time.perf_counter()
        parts = wire.ask(speech_bytes("frames=2")).parts()
        next(parts)
        next(parts)
        heard = (time.perf_counter() - start) * 1e3
        end = list(parts)[-1].document
        waits.append(heard - end["metrics"]["first_audio_microseconds"] / 1e3)
    wire.socket.close()
    return {"rounds": rounds, **quantiles(waits)}


def quantiles(values: list[float]) -> dict[str, float]:
    """Median, p95, p99 and maximum; the p99 only where at least 100 values stand behind it."""
    ordered = sorted(values)
    found = {"p50_ms": ordered[len(ordered) // 2], "p95_ms": ordered[int(len(ordered) * 0.95)], "max_ms": ordered[-1]}
    if len(ordered) >= 100:
        found["p99_ms"] = ordered[int(len(ordered) * 0.99)]
    return {name: round(value, 2) for name, value in found.items()}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=3_000)
    parser.add_argument("--overload-seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=200)
    args = parser.parse_args()
    with running(FRAME_SECONDS) as server:
        crowd(server, 600, seed=1)  # warms caches, pools and the allocator
        report, failed = soak(server, args.requests)
    with running(CALM_FRAME_SECONDS) as server:
        report["overload_429"] = overload(server, args.overload_seconds)
        report["delete_to_error_part"] = cancel_to_stop(server, args.rounds)
        report["first_audio_overhead"] = first_audio_overhead(server, args.rounds)
    print(json.dumps({**report, "failed": failed}, indent=2))
    return 1 if failed else 0


@contextlib.contextmanager
def running(frame_seconds: float) -> Iterator[Process]:
    """A server process; it must end cleanly."""
    with tempfile.TemporaryDirectory() as directory:
        server = launch((*FLAGS, "--frame-seconds", str(frame_seconds)), Path(directory) / "server.log")
        try:
            eventually(server.ready, 15)
            yield server
        finally:
            server.signal(signal.SIGTERM)
            exit_code = server.exit_code()
            server.close()
        assert exit_code == 0, f"the server ended with {exit_code}"


def soak(server: Process, requests: int) -> tuple[dict[str, object], list[str]]:
    before = state_of(server)
    start = time.perf_counter()
    outcomes, failed = crowd(server, requests, seed=2)
    took = time.perf_counter() - start
    after = state_of(server)
    report: dict[str, object] = {
        "requests": sum(outcomes.values()),
        "seconds": round(took, 1),
        "outcomes": dict(outcomes.most_common()),
        "before": before,
        "after": after,
    }
    failed += [f"{name} left" for name in ("active", "tombstones") if after[name]]
    failed += [f"{name} grew" for name in ("files",) if after[name] > before[name]]
    failed += ["threads grew"] if after["threads"] > THREADS else []
    if after["resident_bytes"] - before["resident_bytes"] > MEMORY_ALLOWANCE:
        failed.append("memory grew")
    return report, failed


if __name__ == "__main__":
    sys.exit(main())
