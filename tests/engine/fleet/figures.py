"""Figures of the fleet with the embedded model: `python -m tests.engine.fleet.figures`; wants an idle machine.

One server, a fleet of one replica and a fleet of two, by turns, each under the same closed loop of clients. Prints one
JSON document: audio made each second of wall time, and the time to first audio as the client saw it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from uuid import uuid4

from tests.engine.server.client import Wire, request_bytes, speech_bytes
from tests.engine.server.conftest import ROOT

TEXTS = (
    "The train to the coast leaves at nine in the morning.",
    "Bring the blue folder, please, and close the window.",
    "Nobody had expected the answer to be that simple.",
)
READY_SECONDS = 180.0
SUBJECTS: dict[str, tuple[str, ...]] = {
    "serve": ("serve",),
    "fleet_of_1": ("fleet", "--replicas", "1"),
    "fleet_of_2": ("fleet", "--replicas", "2"),
}


@dataclass
class Tally:
    """What the clients of one subject saw. Times in seconds."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    first_audio: list[float] = field(default_factory=list)
    audio: float = 0.0
    ended: int = 0
    failed: int = 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20.0, help="of load on each subject, each round")
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    rounds = [
        {name: measure(command, options.clients, options.seconds) for name, command in SUBJECTS.items()}
        for _ in range(options.rounds)
    ]
    ratios = [one["fleet_of_2"]["audio_per_second"] / one["fleet_of_1"]["audio_per_second"] for one in rounds]
    document = {"cpus": os.cpu_count(), "clients": options.clients, "seconds": options.seconds, "rounds": rounds}
    print(json.dumps({**document, "two_replicas_over_one": [round(ratio, 3) for ratio in ratios]}, indent=2))
    return 0


def measure(command: tuple[str, ...], clients: int, seconds: float) -> dict[str, Any]:
    """Start the subject, load it, stop it."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "engine", *command, "--port", "0", "--log-level", "error"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        announced = json.loads(process.stdout.readline())
        address = announced["host"], announced["port"]
        started = time.monotonic()
        while not _ready(address):
            assert time.monotonic() - started < READY_SECONDS, f"{command} does not become ready"
            time.sleep(0.2)
        _load(address, clients, 2.0)  # warm
        tally = _load(address, clients, seconds)
        process.terminate()
        process.wait(60)
    return _figures(tally, seconds)


def _ready(address: tuple[str, int]) -> bool:
    with Wire(address) as wire:
        return wire.ask(request_bytes("GET", "/health/ready")).status == 200


def _load(address: tuple[str, int], clients: int, seconds: float) -> Tally:
    tally = Tally()
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=_client, args=(address, until, number, tally)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tally


def _client(address: tuple[str, int], until: float, number: int, tally: Tally) -> None:
    """One request after another; audio counts as it arrives, so that no request is cut off the measure."""
    while time.monotonic() < until:
        sent = time.monotonic()
        text = TEXTS[number % len(TEXTS)]
        with Wire(address, timeout=60.0) as wire:
            wire.ask(speech_bytes(text, {"X-Request-Id": str(uuid4())}, seed=number))
            if wire.status != 200:
                with tally.lock:
                    tally.failed += 1
                continue
            parts = wire.parts()
            list(islice(parts, 1))
            for index, part in enumerate(parts):
                with tally.lock:
                    if index == 0:
                        tally.first_audio.append(time.monotonic() - sent)
                    if part.is_audio and time.monotonic() < until:
                        tally.audio += len(part.body) / 48_000
                    tally.ended += not part.is_audio
        number += 1


def _figures(tally: Tally, seconds: float) -> dict[str, Any]:
    ordered = sorted(tally.first_audio)
    return {
        "audio_per_second": round(tally.audio / seconds, 2),
        "first_audio_ms_p50": round(statistics.median(ordered) * 1e3, 1),
        "first_audio_ms_p95": round(ordered[int(0.95 * (len(ordered) - 1))] * 1e3, 1),
        "requests": tally.ended,
        "refused": tally.failed,
    }


if __name__ == "__main__":
    sys.exit(main())
