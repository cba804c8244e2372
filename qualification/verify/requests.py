"""Plausibility of each request by itself and of all of them together.

1. Request ids are unique.
2. Scheduled send <= t0 <= headers <= first packet, and nothing after the end.
3. Packets arrive in order; bytes are samples x 2; samples are frames x 1,920; positions are contiguous from zero.
4. A successful stream ends with its one final packet; no other packet is final.
5. The samples of a request are the sum of its packets'.
6. The outcome fits the HTTP status, the audio and the end part: a failure cannot be called a success by one word. A
   subject that does not tell how speech ended has no natural ends, any other has an end for each success.
7. The server echoed the seed, or took none and echoed none; its own account (frames, samples, packets) fits and is no longer than the client waited.
8. No more frames than the ceiling that was sent.
9. The audio hash is no placeholder; distinct (text, description, seed) have distinct audio, the seed aside where none is
   taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

from qualification.bench.raw import (
    BYTES_PER_SAMPLE,
    SAMPLE_RATE_HZ,
    SAMPLES_PER_FRAME,
    RequestOutcome,
    RequestRecord,
)
from qualification.digest import sha256_bytes
from qualification.evidence_view import EvidenceView
from qualification.verify.findings import Finding

PLACEHOLDER_HASHES: Final = frozenset({sha256_bytes(b""), *(digit * 64 for digit in "0123456789abcdef")})
CLOCK_SLACK_NS: Final = 5_000_000  # two clocks, and a server stamps before its bytes have left
_LEGAL_STATUS: Final = {
    RequestOutcome.REFUSED: range(400, 600),
    RequestOutcome.STREAM_ERROR: range(200, 300),
}


def check(evidence: EvidenceView) -> Iterator[Finding]:
    """Findings of the nine steps."""
    ceiling = math.ceil(evidence.run["parameters"]["max_duration_seconds"] * SAMPLE_RATE_HZ / SAMPLES_PER_FRAME)
    for path in evidence.sample_files:
        for record in evidence.records_in(path):
            for code, detail in _of_one(record, ceiling, evidence.leaves_open):
                yield Finding(code=code, file=path, detail=f"{record.request_id}: {detail}")
    yield from _unique_ids(evidence.all_records)  # 1
    yield from _distinct_audio(evidence)  # 9


def _of_one(record: RequestRecord, ceiling: int, leaves_open: frozenset[str]) -> Iterator[tuple[str, str]]:
    yield from _times(record)
    yield from _packets(record)
    yield from _outcome(record)
    if record.samples != sum(packet.samples for packet in record.packets):  # 5
        yield "request.samples", "its samples are not the sum of its packets'"
    if sum(packet.frames for packet in record.packets) > ceiling:  # 8
        yield "request.ceiling", f"more frames than the ceiling of {ceiling}"
    if record.pcm_sha256 in PLACEHOLDER_HASHES:  # 9
        yield "audio.placeholder-hash", "the audio hash is a placeholder"
    if record.ok:
        yield from _end(record, told="eos" not in leaves_open)
        yield from _server_account(record, None if "seed" in leaves_open else record.seed)


def _times(record: RequestRecord) -> Iterator[tuple[str, str]]:
    first = record.packets[0].at_ns if record.packets else None  # 2
    moments = [record.scheduled_ns, record.t0_ns, record.headers_ns, first, record.end_ns]
    known = [moment for moment in moments if moment is not None]
    if any(left > right for left, right in pairwise(known)):
        yield "request.time-order", "scheduled, t0, headers, first packet and end are not in this order"
    arrivals = [packet.at_ns for packet in record.packets]
    if any(left > right for left, right in pairwise([*arrivals, record.end_ns])):  # 3
        yield "packet.time-order", "packets are out of order, or one arrives after the end"


def _packets(record: RequestRecord) -> Iterator[tuple[str, str]]:
    frame = sample = 0
    for number, packet in enumerate(record.packets):  # 3
        if packet.bytes != packet.samples * BYTES_PER_SAMPLE:
            yield "packet.bytes", f"packet {number} has {packet.bytes} bytes for {packet.samples} samples"
        if packet.samples != packet.frames * SAMPLES_PER_FRAME:
            yield "packet.frames", f"packet {number} has {packet.samples} samples for {packet.frames} frames"
        if (packet.sequence, packet.first_frame, packet.first_sample) != (number, frame, sample):
            yield "packet.position", f"packet {number} does not begin where the one before ended"
        frame, sample = frame + packet.frames, sample + packet.samples
    finals = [packet.final for packet in record.packets]
    if any(finals[:-1]) or (record.ok and finals[-1:] != [True]):  # 4
        yield "packet.final", "the last packet, and it alone, must be final"


def _outcome(record: RequestRecord) -> Iterator[tuple[str, str]]:
    legal = _LEGAL_STATUS.get(record.outcome)  # 6
    if legal is not None and record.http_status not in legal:
        yield "request.outcome", f"{record.outcome} does not go with HTTP status {record.http_status}"
    if record.outcome is RequestOutcome.REFUSED and record.packets:
        yield "request.outcome", "refused, and yet audio arrived"
    if record.ok and record.server_metrics is None:
        yield "request.outcome", "called ok without the end part that a success has"


def _end(record: RequestRecord, *, told: bool) -> Iterator[tuple[str, str]]:
    if told and record.finish_reason is None:  # 6
        yield "request.outcome", "called ok without an end, and the subject tells how speech ends"
    if not told and record.finish_reason == "stop":
        yield "request.outcome", "a natural end, and the subject does not tell how speech ends"


def _server_account(record: RequestRecord, seed: int | None) -> Iterator[tuple[str, str]]:
    if record.echoed_seed != seed:  # 7
        yield "request.seed-echo", f"seed {seed} was due, {record.echoed_seed} came back"
    metrics = record.server_metrics
    if metrics is None:
        return
    frames = sum(packet.frames for packet in record.packets)
    pairs = (
        (metrics.generated_codec_frames, frames, "frames"),
        (metrics.emitted_samples, record.samples, "samples"),
        (metrics.emitted_packets, len(record.packets), "packets"),
    )
    for told, seen, what in pairs:
        if told is not None and told != seen:
            yield "request.server-account", f"the server tells of {told} {what}, {seen} arrived"
    if _longer(metrics.wall_microseconds, record.end_ns - record.t0_ns):
        yield "request.server-account", "the server's wall is longer than the client waited"
    if _longer(metrics.first_audio_microseconds, record.packets[0].at_ns - record.t0_ns):
        yield "request.server-account", "the server made its first audio after the client had it"


def _longer(microseconds: int | None, nanoseconds: int) -> bool:
    return microseconds is not None and microseconds * 1_000 > nanoseconds + nanoseconds // 100 + CLOCK_SLACK_NS


def _unique_ids(records: Iterable[RequestRecord]) -> Iterator[Finding]:
    seen: set[str] = set()
    for record in records:
        if record.request_id in seen:
            detail = f"request id {record.request_id} appears twice"
            yield Finding(code="request.duplicate-id", file="samples", detail=detail)
        seen.add(record.request_id)


def _distinct_audio(evidence: EvidenceView) -> Iterator[Finding]:
    entries = {entry.id: entry for entry in evidence.workload.entries}
    spoken: dict[str, tuple[str, str, int | None]] = {}
    seeded = "seed" not in evidence.leaves_open
    for record in evidence.all_records:
        entry = entries.get(record.workload_id)
        if not record.ok or record.pcm_sha256 is None or entry is None:
            continue
        what = (entry.text, entry.voice_description, record.seed if seeded else None)
        if spoken.setdefault(record.pcm_sha256, what) != what:
            detail = f"{record.request_id}: the same audio as a request of another text, description or seed"
            yield Finding(code="audio.repeated", file="samples", detail=detail)
