"""Tampers with plan, load, phases and audio, all computed again from the lie."""

from __future__ import annotations

from typing import Any, Final

from qualification import paths
from qualification.clip import encode_wav
from qualification.tamper.bench import Bench, Reseal, find, measured, shift
from qualification.tamper.changes import (
    B1,
    B6,
    MS,
    Tamper,
    case,
    document,
    first_audio,
    number,
    phase,
    set_fields,
)


def _overlap(lines: list[dict[str, Any]]) -> None:
    first, second = list(measured(lines))[:2]
    lines[lines.index(second)] = shift(second, first["t0_ns"] - second["t0_ns"] + MS)


def _late_wave(lines: list[dict[str, Any]]) -> None:
    last = list(measured(lines))[-1]
    lines[lines.index(last)] = shift(last, 110 * MS)


def _rename_audio(bench: Bench) -> None:
    (bench.root / first_audio(bench)).rename(bench.root / "audio" / "another-name.wav")


def _quieter(bench: Bench) -> None:
    path = first_audio(bench)
    data = (bench.root / path).read_bytes()
    bench.replace(path, encode_wav(bytes(len(data) - 44)))


def _endless_header(bench: Bench) -> None:
    path = first_audio(bench)
    data = bytearray((bench.root / path).read_bytes())
    data[40:44] = b"\xff\xff\xff\xff"
    bench.replace(path, bytes(data))


TIMING: Final[tuple[Tamper, ...]] = (
    case("records of another profile", "plan.profile", set_fields(B1, profile="B3")),
    case("another concurrency in the records", "plan.profile", set_fields(B1, concurrency=6)),
    case(
        "a profile without records",
        "plan.profile",
        document(paths.RUN, lambda d: d["profiles"][2].update(samples="samples/none.jsonl")),
        Reseal.MANIFEST,
    ),
    case("another seed than planned", "plan.entry", set_fields(B1, seed=7, echoed_seed=7)),
    case("another sentence than planned", "plan.entry", set_fields(B1, workload_id="bench-two-en")),
    case(
        "a sentence that does not exist",
        "plan.entry",
        document(paths.RUN, lambda d: d["profiles"][2].update(entries=["bench-one-en", "bench-three-en"])),
    ),
    case("warm-up removed", "plan.count", lambda b: b.edit_lines(B1, lambda x: x.pop(0))),
    case("a round that was not planned", "plan.count", set_fields(B1, round=1)),
    case("more in flight than the concurrency", "load.concurrency", lambda b: b.edit_lines(B1, _overlap)),
    case("a wave that did not start together", "load.wave", lambda b: b.edit_lines(B6, _late_wave)),
    case(
        "a measured phase left out",
        "phase.missing",
        document(paths.PHASES, lambda d: d["phases"].remove(find(d["phases"], profile="B1", kind="measure"))),
    ),
    case(
        "a measured phase twice",
        "phase.missing",
        document(paths.PHASES, lambda d: d["phases"].append(find(d["phases"], profile="B1", kind="measure"))),
    ),
    case(
        "requests outside their phase",
        "phase.cover",
        phase(lambda p: p.update(start_ns=p["start_ns"] + 20 * MS), profile="B1", kind="measure"),
    ),
    case(
        "a phase that counts fewer requests",
        "phase.requests",
        phase(lambda p: p.update(requests=5), profile="B1", kind="measure"),
    ),
    case(
        "a phase at another hour",
        "phase.clock",
        phase(lambda p: p.update(start_utc="2026-01-01T05:00:00Z"), profile="B1", kind="measure"),
    ),
    case("phases out of order", "phase.clock", document(paths.PHASES, lambda d: d["phases"].reverse())),
    case("a stored utterance removed", "audio.missing", lambda b: (b.root / first_audio(b)).unlink()),
    case("a record disowns its utterance", "audio.missing", set_fields(B1, audio=None)),
    case("a stored utterance renamed", "audio.orphan", _rename_audio),
    case("a stored utterance silenced", "audio.differs", _quieter),
    case("a WAV header without end", "audio.malformed", _endless_header, Reseal.MANIFEST),
    case("percentiles out of order", "summary.order", number("b1.rtf.max", value=0.0001), Reseal.MANIFEST),
    case("an estimate above its bound", "summary.order", number("b1.failure_rate", value=0.9), Reseal.MANIFEST),
)
