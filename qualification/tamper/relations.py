"""Tampers that the listed ones do not cover: each relation once by itself, and every kind of number lowered or raised."""

from __future__ import annotations

from typing import Any, Final

from qualification import paths
from qualification.tamper.bench import Bench, Reseal, find, measured
from qualification.tamper.changes import B1, B6, MS, Tamper, as_failure, case, document, number, phase, record, scaled


def _profile(which: str, **values: Any) -> Any:
    return document(paths.RUN, lambda run: find(run["profiles"], name=which).update(values))


def _one_utterance_for_two(bench: Bench) -> None:
    def change(lines: list[dict[str, Any]]) -> None:
        first, second = list(measured(lines))[:2]
        second["audio"] = first["audio"]

    bench.edit_lines(B1, change)


def _refused_with_audio(bench: Bench) -> None:
    def change(record: dict[str, Any]) -> None:
        (bench.root / record["audio"]).unlink()
        as_failure(record, **{key: record[key] for key in ("packets", "samples", "pcm_sha256")})

    record(B1, change)(bench)


def _long_enough_for_each(phase: dict[str, Any]) -> None:
    """Longer than the longest of its four requests, shorter than all of them need, three at a time."""
    phase["end_ns"] = phase["start_ns"] + 120 * MS


RELATIONS: Final[tuple[Tamper, ...]] = (
    case("one utterance for two requests", "audio.orphan", _one_utterance_for_two),
    case("audio stored that was not promised", "audio.missing",
         document(paths.RUN, lambda run: run["parameters"].update(store_audio="none"))),
    case("more audio stored than promised", "audio.missing",
         document(paths.RUN, lambda run: run["parameters"].update(store_audio="first"))),
    case("two profiles under one name", "plan.profile", _profile("B3", name="B1")),
    case("two profiles with one file of records", "plan.profile", _profile("B3", samples=B1), Reseal.MANIFEST),
    case("a timed round that ended early", "plan.count", _profile("B1", stop="duration", minimum_seconds=3_600)),
    case("refused, and yet audio", "request.outcome", _refused_with_audio),
    case("a phase too short for all its requests", "phase.too-short",
         phase(_long_enough_for_each, profile="B3", kind="measure")),
    case("a phase that ends before it starts", "phase.clock",
         phase(lambda p: p.update(end_ns=p["start_ns"] - 1), profile="B1", kind="measure")),
    case("a run that ended before its phases", "phase.clock",
         document(paths.RUN, lambda run: run.update(ended_utc="2026-01-01T00:00:00.000000Z"))),
    case("first audio earlier than the first packet", "summary.number-differs", scaled("b1.ttfa.median", 0.5),
         Reseal.MANIFEST),
    case("a throughput raised", "summary.number-differs", scaled("b6.throughput.audio", 2.0), Reseal.MANIFEST),
    case("the RTF of the scenario lowered", "summary.number-differs", scaled("b6.rtf.aggregate", 0.5), Reseal.MANIFEST),
    case("an underrun called none", "summary.number-differs", number("b1.underrun.max", value=-1.0), Reseal.MANIFEST),
    case("a natural end more in one language", "summary.number-differs", number("run.ends.tr.natural", value=99),
         Reseal.MANIFEST),
    case("a language more", "summary.number-differs", number("run.ends.languages", value=24), Reseal.MANIFEST),
    case("clipping denied", "summary.number-differs", number("run.audio.peak.most", value=0.1), Reseal.MANIFEST),
    case("speech made longer", "summary.number-differs", scaled("run.audio.seconds", 2.0), Reseal.MANIFEST),
    case("average power lowered", "summary.number-differs",
         scaled("b1.gpu.power.mean", 0.5), Reseal.MANIFEST),
    case("records of one profile in the file of another", "plan.profile",
         lambda b: b.replace(B1, (b.root / B6).read_bytes())),
)  # fmt: skip
