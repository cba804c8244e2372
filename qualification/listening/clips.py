"""The clips of a bundle that listeners rate, chosen by rule so that nobody chose the best.

One an entry of the coverage and mixed sentences: the first measured utterance that was stored, in the order of the plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from qualification.bench.raw import RequestRecord
from qualification.errors import InputError
from qualification.evidence_view import EvidenceView
from qualification.workload import Kind, WorkloadEntry

OFFERED: Final = (Kind.COVERAGE, Kind.CODE_SWITCH)


@dataclass(frozen=True, kw_only=True)
class ReviewClip:
    """One utterance to rate: its entry, the bundle path of its WAV, the SHA-256 of that file, and its length."""

    entry: WorkloadEntry
    path: str
    sha256: str
    seconds: float


def first_stored(evidence: EvidenceView) -> tuple[tuple[WorkloadEntry, RequestRecord], ...]:
    """Entry and record of the first stored utterance of each offered entry, in the order of the workload."""
    stored = [record for record in evidence.records() if record.audio is not None]
    first = {record.workload_id: record for record in reversed(stored)}
    return tuple((entry, first[entry.id]) for entry in evidence.workload.of_kind(*OFFERED) if entry.id in first)


def review_clips(evidence: EvidenceView) -> tuple[ReviewClip, ...]:
    """The clips to rate, hashed as they lie there. Raises as `EvidenceView` does."""
    return tuple(
        ReviewClip(
            entry=entry,
            path=record.audio,
            sha256=evidence.sha256(record.audio),
            seconds=evidence.clip(record.audio).seconds,
        )
        for entry, record in first_stored(evidence)
        if record.audio is not None
    )


def pairs(left: EvidenceView, right: EvidenceView) -> tuple[tuple[ReviewClip, ReviewClip], ...]:
    """Clips of two bundles that speak the same entry, in the order of the first bundle's workload.

    Raises:
        InputError: no entry is in both, or one has another text or voice description in the other bundle.
    """
    others = {clip.entry.id: clip for clip in review_clips(right)}
    found = tuple((clip, others[clip.entry.id]) for clip in review_clips(left) if clip.entry.id in others)
    for one, other in found:
        if (one.entry.text, one.entry.voice_description) != (other.entry.text, other.entry.voice_description):
            raise InputError(f"{one.entry.id}: the two bundles speak another text or voice; compare equal workloads")
    if not found:
        raise InputError("the two bundles have no stored utterance of a common workload entry; nothing can be paired")
    return found
