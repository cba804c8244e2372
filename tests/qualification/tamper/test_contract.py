"""The contract's list of bundles that must be refused, and its relations, line by line, with the tampers that show each."""

from __future__ import annotations

from typing import Final

import pytest

from qualification.tamper.corpus import CORPUS

CODES: Final = {tamper.name: tamper.code for tamper in CORPUS}
MUST_REFUSE: Final = {
    "energy scaled with the telemetry untouched": ("energy scaled, telemetry untouched",),
    "memory peak of one byte": ("memory peak of one byte in the summary", "memory of one byte in the telemetry"),
    "telemetry replaced by a line of rubbish": (
        "telemetry is a line of rubbish",
        "telemetry is a line of another shape",
    ),
    "wall time shorter than its requests allow": (
        "scenario shorter than its requests allow",
        "a phase too short for all its requests",
    ),
    "audio hash of zeros": ("audio hash of zeros", "audio hash of nothing"),
    "two texts with one audio hash or one server request id": ("two texts with one audio", "two requests with one id"),
    "a percentile lowered": ("a percentile lowered",),
    "average power above peak power": ("average power above peak power",),
    "a request removed from the raw file": (
        "first request removed from the raw file",
        "last request removed from the raw file",
        "requests removed from record, plan and phase",
    ),
    "a failed request relabelled": ("broken stream relabelled ok", "failure relabelled by one word"),
    "a gate result from another run, commit or image": (
        "gate results of another run",
        "gate results of another commit",
        "gate results of another image",
    ),
    "a gate left out": ("a gate left out",),
    "a placeholder limitation": ("a placeholder limitation", "a placeholder for an explanation"),
    "a summary recomputed from fewer requests": ("summary computed from fewer requests",),
    "a bundle signed by a key that the verifier was not given": (
        "signed by a key that was not given",
        "another key under the trusted key's id",
    ),
}
RELATIONS: Final = {
    "scenario wall >= longest request": ("scenario shorter than its requests allow", "phase.too-short"),
    "sum of request walls / scenario wall <= concurrency": (
        "a phase too short for all its requests",
        "phase.too-short",
    ),
    "never more in flight than the concurrency": ("more in flight than the concurrency", "load.concurrency"),
    "last packet <= wall": ("end before the last packet", "packet.time-order"),
    "first packet = TTFA": ("first audio earlier than the first packet", "summary.number-differs"),
    "packet bytes = samples x 2": ("bytes that are no samples", "packet.bytes"),
    "sample positions contiguous": ("a gap between packets", "packet.position"),
    "audio samples = frames x 1,920": ("samples that are no frames", "packet.frames"),
    "request count = workload x repeats": ("last request removed from the raw file", "plan.count"),
    "phases span the measured window": ("requests outside their phase", "phase.cover"),
    "telemetry covers the phases": ("telemetry cut off for more than a second", "telemetry.cover"),
    "unique request ids": ("two requests with one id", "request.duplicate-id"),
    "distinct (text, description, seed) -> distinct audio hash": ("two texts with one audio", "audio.repeated"),
}


@pytest.mark.parametrize("line", MUST_REFUSE)
def test_each_line_has_its_tampers(line: str) -> None:
    assert set(MUST_REFUSE[line]) <= CODES.keys()


@pytest.mark.parametrize("relation", RELATIONS)
def test_each_relation_has_a_tamper_that_breaks_it_with_its_own_finding(relation: str) -> None:
    name, code = RELATIONS[relation]
    assert CODES[name] == code


def test_each_relation_has_a_tamper_of_its_own() -> None:
    used = [name for name, _ in RELATIONS.values()]
    assert sorted(used) == sorted(set(used))
