"""Which utterances of a run are kept as WAV; of the others the hash stays.

One rule for the run, which stores, and for the verifier, which looks whether the promise was kept.
"""

from __future__ import annotations

from collections.abc import Iterable

from qualification.bench.raw import RequestRecord
from qualification.paths import AUDIO_DIRECTORY
from qualification.workload import Kind, Workload


def audio_path(record: RequestRecord) -> str:
    """Bundle path of an utterance that is stored."""
    return f"{AUDIO_DIRECTORY}/{record.request_id}.wav"


def stored_ids(promise: str, records: Iterable[RequestRecord], workload: Workload) -> frozenset[str]:
    """Request ids whose audio is stored under `promise`; only successes ever are.

    `all`; `measured`; `first`: in each profile the first measured success, in order of the plan, of each entry that is
    no benchmark sentence; `none`.
    """
    good = [record for record in records if record.ok and (promise == "all" or record.measured)]
    if promise == "none":
        return frozenset()
    if promise == "first":
        spoken = {entry.id for entry in workload.entries if entry.kind is not Kind.BENCH}
        first: dict[tuple[str, str], RequestRecord] = {}
        for record in sorted(good, key=lambda r: (r.round, r.index)):
            if record.workload_id in spoken:
                first.setdefault((record.profile, record.workload_id), record)
        good = list(first.values())
    return frozenset(record.request_id for record in good)
