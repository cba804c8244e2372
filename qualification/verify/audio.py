"""Plausibility of the stored audio.

1. Every utterance that a record names is there; every stored utterance is named by exactly one record.
2. Each is an exact WAV.
3. Its samples and the SHA-256 of its PCM are those of the record.
4. What the run promised to store (`all`, `measured`, `first`, `none`) is what it stored.
"""

from __future__ import annotations

from collections.abc import Iterator

from qualification.bench.raw import RequestRecord
from qualification.bench.storing import stored_ids
from qualification.errors import BundleError
from qualification.evidence_view import EvidenceView
from qualification.verify.findings import Finding


def check(evidence: EvidenceView) -> Iterator[Finding]:
    """Findings of the four steps."""
    promised = evidence.run["parameters"]["store_audio"]
    chosen = stored_ids(promised, evidence.all_records, evidence.workload)
    named: dict[str, RequestRecord] = {}
    for record in evidence.all_records:
        if (record.request_id in chosen) != (record.audio is not None):  # 4
            detail = f"{record.request_id}: audio was to be stored: {promised}"
            yield Finding(code="audio.missing", file="samples", detail=detail)
        if record.audio is not None:
            if record.audio in named:  # 1
                detail = f"named by {named[record.audio].request_id} and by {record.request_id}"
                yield Finding(code="audio.orphan", file=record.audio, detail=detail)
            named[record.audio] = record
    for path in sorted(set(evidence.audio_files) - named.keys()):  # 1
        yield Finding(code="audio.orphan", file=path, detail="no record names it")
    for path, record in sorted(named.items()):
        yield from _stored(path, record, evidence)


def _stored(path: str, record: RequestRecord, evidence: EvidenceView) -> Iterator[Finding]:
    if not evidence.exists(path):  # 1
        yield Finding(code="audio.missing", file=path, detail=f"named by {record.request_id} and not there")
        return
    try:
        clip = evidence.clip(path)  # 2
    except BundleError as error:
        yield Finding(code="audio.malformed", file=path, detail=str(error))
        return
    if (clip.samples, clip.pcm_sha256) != (record.samples, record.pcm_sha256):  # 3
        detail = f"not the samples that {record.request_id} received"
        yield Finding(code="audio.differs", file=path, detail=detail)
