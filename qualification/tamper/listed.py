"""The list of bundles that the evidence contract says must be refused."""

from __future__ import annotations

from typing import Any, Final

from qualification import paths, strictjson
from qualification.digest import sha256_bytes
from qualification.tamper.bench import Bench, Reseal, find, measured
from qualification.tamper.changes import (
    B1,
    MS,
    Tamper,
    as_failure,
    audio_of,
    case,
    document,
    gate,
    number,
    phase,
    record,
    resign,
    rewrite,
    scaled,
    set_fields,
    telemetry,
)


def _drop_measured(lines: list[dict[str, Any]], *, last: bool) -> None:
    chosen = list(measured(lines))
    lines.remove(chosen[-1] if last else chosen[0])


def _fewer_everywhere(bench: Bench) -> None:
    """The last turn of requests removed from raw file, plan and phase, with its audio: only the signature is left."""
    for _ in range(2):
        bench.edit_lines(B1, lambda lines: _drop_measured(lines, last=True))
    named = {line["audio"] for line in strictjson.loads_lines((bench.root / B1).read_bytes(), B1)}
    for path in [path for path in audio_of(bench, "B1") if path not in named]:
        (bench.root / path).unlink()
    bench.edit(paths.RUN, lambda run: find(run["profiles"], name="B1").update(repeats=2))
    bench.edit(paths.PHASES, lambda d: find(d["phases"], profile="B1", kind="measure").update(requests=4))


def _relabel_failure(record: dict[str, Any]) -> None:
    """A stream that broke off, called a success by the one word and what the schema asks of it."""
    record.update(server_metrics=None)


def _same_audio(bench: Bench) -> None:
    """The second text gets the first one's samples, in the record and in the file."""

    def change(lines: list[dict[str, Any]]) -> None:
        first, second = list(measured(lines))[:2]
        second["pcm_sha256"] = first["pcm_sha256"]
        bench.replace(second["audio"], (bench.root / first["audio"]).read_bytes())

    bench.edit_lines(B1, change)


def _same_id(lines: list[dict[str, Any]]) -> None:
    first, second = list(measured(lines))[:2]
    second["request_id"] = first["request_id"]


LISTED: Final[tuple[Tamper, ...]] = (
    case("energy scaled, telemetry untouched", "summary.number-differs", scaled("b1.gpu.energy", 0.5), Reseal.MANIFEST),
    case(
        "memory peak of one byte in the summary",
        "summary.number-differs",
        number("run.memory.rss.peak", value=1),
        Reseal.MANIFEST,
    ),
    case(
        "memory of one byte in the telemetry",
        "telemetry.memory",
        telemetry(lambda lines: [line.update(rss_bytes=1) for line in lines]),
    ),
    case(
        "telemetry is a line of rubbish",
        "document.malformed",
        rewrite(paths.TELEMETRY, lambda _: b"rubbish\n"),
        Reseal.MANIFEST,
    ),
    case(
        "telemetry is a line of another shape",
        "document.malformed",
        rewrite(paths.TELEMETRY, lambda _: b'{"power":1}\n'),
        Reseal.MANIFEST,
    ),
    case(
        "scenario shorter than its requests allow",
        "phase.too-short",
        phase(lambda p: p.update(end_ns=p["start_ns"] + 50 * MS), profile="B1", kind="measure"),
    ),
    case("audio hash of zeros", "audio.placeholder-hash", set_fields(B1, pcm_sha256="0" * 64)),
    case("audio hash of nothing", "audio.placeholder-hash", set_fields(B1, pcm_sha256=sha256_bytes(b""))),
    case("two texts with one audio", "audio.repeated", _same_audio),
    case("two requests with one id", "request.duplicate-id", lambda b: b.edit_lines(B1, _same_id)),
    case("a percentile lowered", "summary.number-differs", scaled("b1.rtf.median", 0.9), Reseal.MANIFEST),
    case(
        "average power above peak power", "summary.power", number("b1.gpu.power.mean", value=1000000.0), Reseal.MANIFEST
    ),
    case(
        "first request removed from the raw file",
        "plan.index",
        lambda b: b.edit_lines(B1, lambda x: _drop_measured(x, last=False)),
    ),
    case(
        "last request removed from the raw file",
        "plan.count",
        lambda b: b.edit_lines(B1, lambda x: _drop_measured(x, last=True)),
    ),
    case("requests removed from record, plan and phase", "statement.differs", _fewer_everywhere),
    case("broken stream relabelled ok", "request.outcome", record(B1, _relabel_failure)),
    case(
        "failure relabelled by one word",
        "document.malformed",
        record(B1, lambda r: as_failure(r, outcome="ok")),
        Reseal.MANIFEST,
    ),
    case(
        "gate results of another run",
        "binding.run",
        document(paths.GATES, lambda d: d.update(run_id="another-run-0001")),
        Reseal.MANIFEST,
    ),
    case(
        "gate results of another commit",
        "binding.commit",
        document(paths.GATES, lambda d: d.update(commit="f" * 40)),
        Reseal.MANIFEST,
    ),
    case(
        "gate results of another image",
        "binding.image",
        document(paths.GATES, lambda d: d.update(image="sha256:" + "f" * 64)),
        Reseal.MANIFEST,
    ),
    case(
        "gate results under another policy",
        "binding.policy",
        document(paths.GATES, lambda d: d.update(policy_sha256="f" * 64)),
        Reseal.MANIFEST,
    ),
    case("a gate left out", "gates.missing", document(paths.GATES, lambda d: d["results"].pop(3)), Reseal.MANIFEST),
    case("a placeholder for an explanation", "wording.placeholder", gate("provenance", needed="TODO"), Reseal.MANIFEST),
    case(
        "a placeholder limitation",
        "wording.placeholder",
        document(paths.SUMMARY, lambda d: d["limitations"][0].update(text="To be defined before the release.")),
        Reseal.MANIFEST,
    ),
    case(
        "summary computed from fewer requests",
        "summary.number-differs",
        number("b1.requests", value=5, n=5),
        Reseal.MANIFEST,
    ),
    case("signed by a key that was not given", "signature.untrusted", resign, Reseal.NOTHING),
)
