"""The utterances that the page plays, and the table of languages.

One utterance an entry: the first measured one that was stored, in the order of the plan, so that nobody chose the best.
Utterances that ran into the ceiling are added, because they are what one should hear.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from qualification import paths
from qualification.bench.raw import RequestRecord
from qualification.clip import Clip
from qualification.evidence_view import EvidenceView
from qualification.listening.clips import first_stored
from qualification.report.words import language_name
from qualification.workload import WorkloadEntry

MOST_UNNATURAL: Final = 6
RIGHT_TO_LEFT: Final = frozenset({"ar", "fa", "he", "ur"})


@dataclass(frozen=True, kw_only=True)
class Voice:
    """One utterance to play. `data` is the stored WAV in base64, `record` the raw record with its PCM hash."""

    entry: WorkloadEntry
    record: RequestRecord
    clip: Clip
    data: str

    @property
    def language(self) -> str:
        return language_name(self.entry.language)

    @property
    def direction(self) -> str:
        return "rtl" if self.entry.language in RIGHT_TO_LEFT else "ltr"


@dataclass(frozen=True, kw_only=True)
class End:
    """How one request of a language ended: natural, ceiling, failed, or untold."""

    style: str
    sign: str
    words: str


@dataclass(frozen=True, kw_only=True)
class LanguageRow:
    """A language of the workload with every measured request of it."""

    name: str
    tag: str
    asked_as: str
    claimed: bool
    natural: int
    ends: Sequence[End]


def voices(evidence: EvidenceView) -> tuple[Voice, ...]:
    """The utterances in the order of the workload, those that did not end by themselves last."""
    stored = [record for record in evidence.records() if record.audio is not None]
    chosen = list(first_stored(evidence))
    taken = {record.request_id for _, record in chosen}
    endless = [record for record in stored if record.finish_reason == "length" and record.request_id not in taken]
    chosen += [(evidence.workload.entry(record.workload_id), record) for record in endless[:MOST_UNNATURAL]]
    return tuple(_voice(evidence, entry, record) for entry, record in chosen)


def language_rows(evidence: EvidenceView) -> tuple[LanguageRow, ...]:
    """One row a language of the coverage sentences, over all profiles, then mixed sentences."""
    by_language: dict[str, list[RequestRecord]] = {}
    for record in evidence.records():
        by_language.setdefault(record.language, []).append(record)
    tags = [*evidence.workload.languages]
    tags += [tag for tag in by_language if tag not in tags]
    return tuple(_language_row(evidence, tag, by_language) for tag in tags)


def _voice(evidence: EvidenceView, entry: WorkloadEntry, record: RequestRecord) -> Voice:
    assert record.audio is not None  # chosen for it
    data = paths.locate(evidence.root, record.audio).read_bytes()
    return Voice(
        entry=entry, record=record, clip=evidence.clip(record.audio), data=base64.b64encode(data).decode("ascii")
    )


def _language_row(evidence: EvidenceView, tag: str, records: Mapping[str, Sequence[RequestRecord]]) -> LanguageRow:
    entries = [entry for entry in evidence.workload.entries if entry.language == tag]
    own = records.get(tag, ())
    fields = sorted({entry.language_field for entry in entries}, key=lambda field: (field == "auto", field))
    return LanguageRow(
        name=language_name(tag),
        tag=tag,
        asked_as=", ".join(fields),
        claimed=any(entry.claimed_by_checkpoint for entry in entries),
        natural=sum(1 for record in own if record.ok and record.finish_reason == "stop"),
        ends=[_end(record) for record in own],
    )


def _end(record: RequestRecord) -> End:
    where = f"{record.workload_id}, {record.profile}, seed {record.seed}"
    if not record.ok:
        return End(style="failed", sign="\u2715", words=f"failed: {record.error_code} ({where})")
    if record.finish_reason is None:
        return End(style="undone", sign="\u25cb", words=f"nobody tells how it ended ({where})")
    if record.finish_reason != "stop":
        return End(style="inconclusive", sign="\u25b2", words=f"ran into the ceiling ({where})")
    return End(style="passed", sign="\u25cf", words=f"ended by itself ({where})")
