"""Whether those inside notice those who are refused: the same streams alone and under an overload, in turn.

Every slot holds a stream that lasts the whole window: fixed text and seed, ended by its own ceiling. The window lies
between two marks of each stream's audio, so that both arms time the same samples. The server has a core of its own where
there are two, the clients another; refusals are asked for at a stated rate by a process of their own. Rounds alternate
their order, and a round is the unit of the bootstrap.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from qualification.comparison.bootstrap import paired_ratio
from tests.engine.server.client import speech_bytes
from tests.engine.server.conftest import ROOT, Process, eventually
from tests.engine.server.flood import SENTENCE
from tests.engine.server.listener import FROM_SECONDS, TO_SECONDS, Listener
from tests.engine.server.soak import quantiles, run_threads

SEED = 20_260
CORES = os.sched_getaffinity(0)  # all that this process may use, whatever it is held to later
LEVELS = {"tenfold": 10, "hundredfold": 100}  # times the rate at which the slots finish an ordinary sentence


@dataclass
class Arm:
    """One load in one round."""

    listeners: list[Listener]
    flood: dict[str, Any] | None = None


def measure(server: Process, *, slots: int, rounds: int) -> tuple[dict[str, Any], list[str]]:
    """The figures, and what went wrong."""
    seeds = _lasting_seeds(server, slots)
    rate = _sentences_a_second(server, slots)
    names = ["alone", *LEVELS]
    found: dict[str, list[Arm]] = {name: [] for name in names}
    for number in range(rounds):
        for name in names if number % 2 == 0 else reversed(names):
            found[name].append(_arm(server, seeds, rate * LEVELS.get(name, 0)))
    report: dict[str, Any] = {
        "niceness": os.nice(0), "load_average": os.getloadavg()[1],
        "cores": {"server": sorted(os.sched_getaffinity(server.process.pid)), "clients": sorted(os.sched_getaffinity(0))},
        "slots": slots, "rounds": rounds, "audio_seconds_a_stream": TO_SECONDS - FROM_SECONDS,
        "sentences_a_second": round(rate, 2), "alone": _summary(found["alone"]),
    }  # fmt: skip
    for name in LEVELS:
        report[name] = {**_summary(found[name]), **_refusals(found[name]), **_effect(found["alone"], found[name])}
    return report, _faults(found)


@contextmanager
def on_core(core: int) -> Iterator[None]:
    """What is started inside runs on this core alone, also within another such block; nothing where there is one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core} if len(CORES) > 1 else CORES)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _hold(server: Process, seeds: list[int]) -> list[Listener]:
    """Listeners of these seeds, all of them at once; their threads are waited for."""
    listeners = [Listener(seed) for seed in seeds]
    run_threads(len(listeners), lambda number: listeners[number].listen(server))
    eventually(lambda: server.metric("assay_active_requests") == 0, 30)
    return listeners


def _lasting_seeds(server: Process, slots: int) -> list[int]:
    """Seeds whose streams do not end by themselves; one row's audio does not depend on the others'."""
    found: list[int] = []
    first = SEED
    while len(found) < slots:
        assert first < SEED + 20 * slots, "too few streams last; take a longer text"
        tried = _hold(server, list(range(first, first + slots)))
        found += [listener.seed for listener in tried if listener.reason == "length"]
        first += slots
    return found[:slots]


def _sentences_a_second(server: Process, slots: int, each: int = 4) -> float:
    """How many ordinary sentences the slots finish in a second, all of them busy."""

    def work(number: int) -> None:
        for turn in range(each):
            with server.wire() as wire:
                list(wire.ask(speech_bytes(SENTENCE, seed=SEED + number * each + turn)).parts())

    began = time.perf_counter()
    run_threads(slots, work)
    return slots * each / (time.perf_counter() - began)


def _arm(server: Process, seeds: list[int], rate: float) -> Arm:
    if not rate:
        return Arm(_hold(server, seeds))
    listeners = [Listener(seed) for seed in seeds]
    threads = [threading.Thread(target=listener.listen, args=(server,)) for listener in listeners]
    with _flood(server, rate) as flood:
        for thread in threads:
            thread.start()
        eventually(lambda: all(listener.at for listener in listeners), 30)  # every slot is taken
        assert flood.stdin is not None
        flood.stdin.write("go\n")
        flood.stdin.flush()
        eventually(lambda: max(listener.heard for listener in listeners) > TO_SECONDS, 120)
        told, _ = flood.communicate()
    for thread in threads:
        thread.join()
    eventually(lambda: server.metric("assay_active_requests") == 0, 30)
    return Arm(listeners, json.loads(told))


@contextmanager
def _flood(server: Process, rate: float) -> Iterator[subprocess.Popen[str]]:
    """A flood that is ready to begin."""
    command = [sys.executable, "-m", "tests.engine.server.flood", *map(str, server.address), str(rate)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as flood:
        try:
            assert flood.stdout is not None
            assert flood.stdout.readline() == "ready\n"
            yield flood
        finally:
            flood.kill()


def _summary(arms: list[Arm]) -> dict[str, Any]:
    listeners = [listener for arm in arms for listener in arm.listeners]
    factors = sorted(listener.rtf for listener in listeners)
    return {
        "streams": len(listeners),
        "rtf": {"median": round(factors[len(factors) // 2], 4), "worst": round(factors[-1], 4)},
        "gap": quantiles([gap for listener in listeners for gap in listener.gaps]),
        "underruns": sum(listener.underruns for listener in listeners),
    }


def _refusals(arms: list[Arm]) -> dict[str, Any]:
    floods = [arm.flood for arm in arms if arm.flood]
    answers = sum((Counter(flood["answers"]) for flood in floods), Counter[str]())
    seconds = sum(flood["seconds"] for flood in floods)
    return {
        "answers": dict(answers),
        "refused_a_second": round(answers["429"] / seconds, 1),
        "late": sum(flood["late"] for flood in floods),
        "refusal": quantiles([wait for flood in floods for wait in flood["waits_ms"]]),
    }


def _effect(alone: list[Arm], loaded: list[Arm]) -> dict[str, Any]:
    """Loaded over alone, stream by stream of the same round."""

    def ratio(values: dict[str, list[list[float]]]) -> dict[str, float | None]:
        estimate = paired_ratio(values["alone"], values["loaded"], seed=SEED)
        return {
            name: None if value is None else round(value, 4)
            for name, value in (("ratio", estimate.ratio), ("low", estimate.low), ("high", estimate.high))
        }

    arms = {"alone": alone, "loaded": loaded}
    return {
        "rtf_against_alone": ratio(
            {name: [[one.rtf for one in arm.listeners] for arm in found] for name, found in arms.items()}
        ),
        "longest_gap_against_alone": ratio(
            {name: [[max(one.gaps) for one in arm.listeners] for arm in found] for name, found in arms.items()}
        ),
    }


def _faults(found: dict[str, list[Arm]]) -> list[str]:
    """Streams that are not whole, and refusal clients that were told anything but 429."""
    faults = []
    starved = {name: sum(one.underruns for arm in arms for one in arm.listeners) for name, arms in found.items()}
    if starved["tenfold"] > starved["alone"]:
        faults.append(f"underruns under ten times the load: {starved}")
    for name, arms in found.items():
        for arm in arms:
            faults += [f"{name}: a stream was cut short" for one in arm.listeners if not one.whole]
            if arm.flood and set(arm.flood["answers"]) != {"429"}:
                faults.append(f"{name}: answers beside 429: {arm.flood['answers']}")
    return faults
