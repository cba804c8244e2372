"""Which requests of two bundles are the same request, asked of two subjects.

A request is matched by its text, voice description, language field, seed, profile and round; where a plan asks the same
thing twice in a round, the first of A goes with the first of B. What each side sent, lost and ended is counted
over all that it sent, matched or not: nothing is left out because it failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from qualification.bench.raw import RequestRecord
from qualification.evidence_view import EvidenceView

Asked = tuple[str, str, str, int, int]  # text, description, language field, seed, which of its kind


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What became of the measured requests of one side; `unknown`: audio came, and nobody said how it ended."""

    requests: int
    failed: int
    natural: int
    ceiling: int
    unknown: int

    @classmethod
    def of(cls, records: Sequence[RequestRecord]) -> Tally:
        ends = Counter(record.finish_reason for record in records if record.ok)
        return cls(
            requests=len(records),
            failed=sum(not record.ok for record in records),
            natural=ends["stop"],
            ceiling=ends["length"],
            unknown=ends[None],
        )


@dataclass(frozen=True, kw_only=True)
class Round:
    """One round of one profile on both sides. `pairs` succeeded on both; `only_a` and `only_b` were sent to one side."""

    a: tuple[RequestRecord, ...]
    b: tuple[RequestRecord, ...]
    pairs: tuple[tuple[RequestRecord, RequestRecord], ...]
    matched: int
    only_a: int
    only_b: int


def rounds_of(a: EvidenceView, b: EvidenceView, profile: str) -> tuple[Round, ...]:
    """The rounds of `profile` that both bundles have, in order."""
    sides = [_by_round(evidence, profile) for evidence in (a, b)]
    shared = sorted(sides[0].keys() & sides[1].keys())
    return tuple(_round(a, sides[0][turn], b, sides[1][turn]) for turn in shared)


def _round(a: EvidenceView, of_a: list[RequestRecord], b: EvidenceView, of_b: list[RequestRecord]) -> Round:
    left, right = dict(_asked(a, of_a)), dict(_asked(b, of_b))
    shared = [key for key in left if key in right]
    return Round(
        a=tuple(of_a),
        b=tuple(of_b),
        pairs=tuple((left[key], right[key]) for key in shared if left[key].ok and right[key].ok),
        matched=len(shared),
        only_a=len(left) - len(shared),
        only_b=len(right) - len(shared),
    )


def _by_round(evidence: EvidenceView, profile: str) -> dict[int, list[RequestRecord]]:
    rounds: dict[int, list[RequestRecord]] = {}
    for record in sorted(evidence.records(profile=profile), key=lambda record: record.index):
        rounds.setdefault(record.round, []).append(record)
    return rounds


def _asked(evidence: EvidenceView, records: Iterable[RequestRecord]) -> Iterator[tuple[Asked, RequestRecord]]:
    seen: Counter[tuple[str, str, str, int]] = Counter()
    for record in records:
        entry = evidence.workload.entry(record.workload_id)
        what = (entry.text, entry.voice_description, entry.language_field, record.seed)
        yield (*what, seen[what]), record
        seen[what] += 1
