"""Tampers with single requests, the gates and the summary computed again from the lie."""

from __future__ import annotations

from typing import Final

from qualification import paths
from qualification.tamper.changes import B1, MS, Tamper, as_failure, case, document, packet, record, set_fields

REQUESTS: Final[tuple[Tamper, ...]] = (
    case(
        "end before the last packet", "packet.time-order", record(B1, lambda r: r.update(end_ns=r["t0_ns"] + 30 * MS))
    ),
    case(
        "audio before the headers",
        "request.time-order",
        record(B1, lambda r: r["packets"][0].update(at_ns=r["t0_ns"] + 1)),
    ),
    case(
        "sent before it was scheduled",
        "request.time-order",
        record(B1, lambda r: r.update(scheduled_ns=r["t0_ns"] + MS)),
    ),
    case("bytes that are no samples", "packet.bytes", packet(1, bytes=4)),
    case("samples that are no frames", "packet.frames", packet(1, frames=4)),
    case("a gap between packets", "packet.position", packet(1, first_frame=2)),
    case("no final packet", "packet.final", packet(1, final=False)),
    case("two final packets", "packet.final", packet(0, final=True)),
    case("samples counted twice", "request.samples", record(B1, lambda r: r.update(samples=r["samples"] * 2))),
    case(
        "more frames than the ceiling",
        "request.ceiling",
        document(paths.RUN, lambda d: d["parameters"].update(max_duration_seconds=0.16)),
    ),
    case("ok, and nobody says how it ended", "request.outcome", set_fields(B1, finish_reason=None)),
    case(
        "natural ends of a subject that cannot know them",
        "request.outcome",
        document(paths.RUN, lambda d: d["subject"].update(leaves_open=["eos"])),
    ),
    case(
        "a seed echoed by a subject that takes none",
        "request.seed-echo",
        document(paths.RUN, lambda d: d["subject"].update(leaves_open=["seed"])),
    ),
    case("another seed came back", "request.seed-echo", set_fields(B1, echoed_seed=1)),
    case(
        "the server tells of other frames",
        "request.server-account",
        record(B1, lambda r: r["server_metrics"].update(generated_codec_frames=400)),
    ),
    case(
        "the client was faster than the server",
        "request.server-account",
        record(B1, lambda r: r["server_metrics"].update(wall_microseconds=900000)),
    ),
    case(
        "audio at the client before it was made",
        "request.server-account",
        record(B1, lambda r: r["server_metrics"].update(first_audio_microseconds=60000)),
    ),
    case(
        "refused with status 200",
        "request.outcome",
        record("samples/eos.jsonl", lambda r: as_failure(r, http_status=200)),
    ),
)
