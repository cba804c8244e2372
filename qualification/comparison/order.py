"""In which order the rounds of two subjects ran, read from the clocks of their records.

Only an order that alternates keeps a drift of the machine out of the difference; rounds that overlapped on one machine
measured each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import groupby, pairwise
from typing import Final

from qualification import paths
from qualification.bench.raw import RequestRecord
from qualification.evidence_view import EvidenceView

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Order(StrEnum):
    """`alternating`: each two neighbours are one round of each side (ABAB, ABBA)."""

    ALTERNATING = "alternating"
    ONE_AFTER_THE_OTHER = "one_after_the_other"
    MIXED = "mixed"
    OVERLAPPING = "overlapping"


@dataclass(frozen=True, kw_only=True, order=True)
class Block:
    """The measured requests of one round of one side, in nanoseconds since 1970."""

    start_ns: int
    end_ns: int
    side: str


def block(evidence: EvidenceView, records: Sequence[RequestRecord], side: str) -> Block:
    """When `records`, at least one, were in flight."""
    since = datetime.fromisoformat(evidence.document(paths.PHASES)["clock"]["zero_utc"]) - _EPOCH
    zero_ns = since // timedelta(microseconds=1) * 1_000
    return Block(
        start_ns=zero_ns + min(record.t0_ns for record in records),
        end_ns=zero_ns + max(record.end_ns for record in records),
        side=side,
    )


def order_of(blocks: Sequence[Block]) -> tuple[str, Order]:
    """Sides in order of their start, such as `ABBA`, and what that order is."""
    ordered = sorted(blocks)
    sequence = "".join(item.side for item in ordered)
    if any(right.start_ns < left.end_ns for left, right in pairwise(ordered)):
        return sequence, Order.OVERLAPPING
    if len(list(groupby(sequence))) == 2:
        return sequence, Order.ONE_AFTER_THE_OTHER
    neighbours = {frozenset(sequence[at : at + 2]) for at in range(0, len(sequence), 2)}
    return sequence, Order.ALTERNATING if neighbours == {frozenset("AB")} else Order.MIXED
