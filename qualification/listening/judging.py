"""What a record of the right shape must also be, for a given bundle; asked before signing and again by the verifier.

1. It names this bundle, by the digest of its manifest.
2. Every clip is the one of its entry, with the hash of the file that lies in the bundle.
3. All clips were rated, each once; of a pair, that is known for this bundle's half alone.
4. Order and sides follow from the seed.
5. The sitting lasted as long as its clips.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from qualification import paths
from qualification.evidence_view import EvidenceView
from qualification.listening import blinding
from qualification.listening.clips import ReviewClip, review_clips

SINGLE: Final = "single"
SLACK_SECONDS: Final = 0.25  # of each clip: players stop a little early, and clocks are read between events
Record = Mapping[str, Any]
Problem = tuple[str, str]


def problems(evidence: EvidenceView, record: Record) -> Iterator[Problem]:
    """(finding code, sentence) for each of the five points that does not hold; `record` is of its schema."""
    position = position_of(evidence, record)
    if position is None:  # 1
        yield "layer.moved", "a review of other bundles than this one"
        return
    expected = {clip.entry.id: clip for clip in review_clips(evidence)}
    for item in record["items"]:  # 2
        yield from _of_item(item, record, position, expected.get(item["workload_id"]))
    names = [item["workload_id"] for item in record["items"]]
    unrated = expected.keys() - set(names) if record["mode"] == SINGLE else set()
    if unrated or len(set(names)) < len(names):  # 3
        yield "layer.coverage", f"not every clip once; not rated: {', '.join(sorted(unrated)) or 'none'}"
    if names != list(blinding.order(record["seed"], names)):  # 4
        yield "layer.order", "the items are not in the order that the seed gives"
    yield from _time(record, [expected[name] for name in names if name in expected])


def position_of(evidence: EvidenceView, record: Record) -> int | None:
    """Where this bundle stands in the record's `bundles`; None: nowhere, or the record names one bundle twice."""
    named = [bundle["manifest_sha256"] for bundle in record["bundles"]]
    own = evidence.sha256(paths.MANIFEST)
    return named.index(own) if named.count(own) == 1 else None


def _of_item(item: Mapping[str, Any], record: Record, position: int, expected: ReviewClip | None) -> Iterator[Problem]:
    name = item["workload_id"]
    sides = [clip["bundle"] for clip in item["clips"]]
    if sorted(sides) != list(range(len(record["bundles"]))):
        yield "layer.clip", f"{name}: not one clip of each bundle"
        return
    own = item["clips"][sides.index(position)]
    if expected is None or (own["path"], own["sha256"]) != (expected.path, expected.sha256):
        yield "layer.clip", f"{name}: {own['path']} with that hash is not the clip that this bundle offers"
    if record["mode"] != SINGLE and (sides[0] == 1) != blinding.swapped(record["seed"], name):
        yield "layer.order", f"{name}: the clips of the pair are not on the sides that the seed gives"


def _time(record: Record, clips: Sequence[ReviewClip]) -> Iterator[Problem]:
    lasted = (_moment(record["ended_utc"]) - _moment(record["started_utc"])).total_seconds()
    needed = sum(max(0.0, clip.seconds - SLACK_SECONDS) for clip in clips)
    if lasted < needed:  # 5
        yield "layer.times", f"{lasted:.1f} s from start to end, {needed:.1f} s of clips were heard"


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
