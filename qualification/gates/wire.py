"""Did every stream keep the wire contract, and does one request always give the same samples?

The contract is checked again from the packets of the raw records. Reproducibility compares requests that differ in
nothing and were sent alone (concurrency 1): identical input, identical state of the machine, so identical samples are
due. Whether a busy batch changes samples is counted and said, and decides nothing: float sums may depend on the shape
of a batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from qualification.bench.raw import BYTES_PER_SAMPLE, SAMPLES_PER_FRAME, RequestOutcome, RequestRecord
from qualification.evidence_view import EvidenceView
from qualification.gates.answers import Figure, answer, listed
from qualification.policy import Policy
from qualification.results import Comparison, GateResult, Outcome

MAX_LATER_FRAMES = 4
_Key = tuple[str, str, int]


@dataclass(frozen=True, kw_only=True)
class ContractGate:
    """No stream broke a rule; warm-up counts too."""

    id: str = "wire.stream-contract"

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult:
        """Look for broken streams among all records, and at the positions of those that succeeded."""
        if evidence.run["subject"]["kind"] == "adapter":
            detail = "The streams are the adapter's own work; the subject behind it does not speak this wire."
            return answer(policy, self.id, Outcome.NOT_PERFORMED, n=0, detail=detail, reason_code="adapter_speaks")
        records = evidence.records(phase=None)
        good = [record for record in records if record.ok]
        broken = [record for record in records if record.outcome is RequestOutcome.STREAM_ERROR]
        faults = [f"{record.request_id}: {record.error_code}" for record in broken]
        faults += [f"{record.request_id}: {fault}" for record in good for fault in _faults(record)]
        figure = Figure(observed=len(faults), limit=0, comparison=Comparison.AT_MOST, unit="faults")
        if faults:
            n = len(good) + len(broken)
            return answer(policy, self.id, Outcome.FAILED, n=n, detail=listed(faults), figure=figure)
        if not good:
            detail = "No request succeeded, so no stream could be looked at."
            return answer(policy, self.id, Outcome.NOT_PERFORMED, n=0, detail=detail, reason_code="no_success")
        detail = f"{len(good)} streams: one frame first, then one to four, positions without a gap, seed echoed."
        return answer(policy, self.id, Outcome.PASSED, n=len(good), detail=detail, figure=figure)


@dataclass(frozen=True, kw_only=True)
class ReproducibilityGate:
    """Equal requests, sent alone, give equal samples."""

    id: str = "wire.reproducibility"

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult:
        """Compare the hashes of requests that differ in nothing."""
        if "seed" in evidence.leaves_open:
            detail = "The subject takes no seed, so no two of its requests are equal."
            return answer(policy, self.id, Outcome.NOT_PERFORMED, n=0, detail=detail, reason_code="seed_not_controlled")
        alone = _hashes(record for record in evidence.records(phase=None) if record.ok and record.concurrency == 1)
        busy = _hashes(record for record in evidence.records(phase=None) if record.ok and record.concurrency > 1)
        repeated = {key: hashes for key, hashes in alone.items() if len(hashes) > 1}
        if not repeated:
            detail = "No request was sent twice alone, so there is nothing to compare."
            return answer(policy, self.id, Outcome.NOT_PERFORMED, n=0, detail=detail, reason_code="nothing_repeated")
        differing = [f"{key[0]} seed {key[2]}" for key, hashes in repeated.items() if len(set(hashes)) > 1]
        figure = Figure(observed=len(differing), limit=0, comparison=Comparison.AT_MOST, unit="requests")
        detail = f"{len(repeated)} requests were repeated alone, {len(differing)} gave different samples"
        detail += f": {listed(differing)}." if differing else "."
        outcome = Outcome.FAILED if differing else Outcome.PASSED
        detail += _batch_sentence(alone, busy)
        return answer(policy, self.id, outcome, n=len(repeated), detail=detail, figure=figure)


def _faults(record: RequestRecord) -> Iterator[str]:
    frames = 0
    for number, packet in enumerate(record.packets):
        at = (packet.sequence, packet.first_frame, packet.first_sample)
        if at != (number, frames, frames * SAMPLES_PER_FRAME):
            yield f"packet {number} has a position that does not follow"
        if not 1 <= packet.frames <= (1 if number == 0 else MAX_LATER_FRAMES):
            yield f"packet {number} has {packet.frames} frames"
        if packet.samples != packet.frames * SAMPLES_PER_FRAME or packet.bytes != packet.samples * BYTES_PER_SAMPLE:
            yield f"packet {number} has a size that does not fit its frames"
        if packet.final != (number == len(record.packets) - 1):
            yield f"packet {number} carries the wrong final mark"
        frames += packet.frames
    if record.echoed_seed != record.seed:
        yield f"seed {record.echoed_seed} echoed for {record.seed}"


def _hashes(records: Iterable[RequestRecord]) -> dict[_Key, list[str]]:
    groups: dict[_Key, list[str]] = defaultdict(list)
    for record in records:
        groups[record.workload_id, record.language, record.seed].append(record.pcm_sha256 or "")
    return groups


def _batch_sentence(alone: dict[_Key, list[str]], busy: dict[_Key, list[str]]) -> str:
    shared = [key for key in alone if key in busy]
    if not shared:
        return ""
    changed = sum(1 for key in shared if set(busy[key]) != set(alone[key]))
    return f" Of {len(shared)} that were also sent beside others, {changed} gave other samples there."
