"""Is speech inside the container as fast as the same commit outside it, on the same machine in the same run?

A round's figure is its median real-time factor inside over that outside; what is judged is the median over the
rounds, with its distribution-free 95 % upper bound: at most 3 % worse. Below five rounds there is no bound, and so no
pass. The same text and seed must give the same samples on both sides; else two different things were compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from qualification import paths, schema, strictjson
from qualification.bench import statistics
from qualification.evidence_view import EvidenceView
from qualification.gates.answers import Figure, answer, listed
from qualification.gates.container_evidence import container_document, unperformed
from qualification.policy import Policy
from qualification.results import Comparison, GateResult, Outcome, decide

PARITY: Final = "records/parity.json"
LIMIT: Final = 1.03
SAMPLES_PER_SECOND: Final = 24_000
SIDES: Final = ("bare", "container")


@dataclass(frozen=True, kw_only=True)
class ContainerParityGate:
    """The rows of `records/parity.json`; the warm-up (round -1) is left out."""

    id: str = "container.parity"

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult:
        """No failures, equal samples, then the ratio."""
        document = container_document(evidence)
        if (early := unperformed(policy, self.id, document)) is not None:
            return early
        if not evidence.exists(PARITY):
            detail = "Nothing was spoken outside the container for comparison."
            return answer(policy, self.id, Outcome.NOT_PERFORMED, n=0, detail=detail, reason_code="no_comparison")
        parity = strictjson.load(paths.locate(evidence.root, PARITY), PARITY)
        schema.validate("parity", parity, PARITY)
        rows = [row for row in parity["rows"] if row["round"] >= 0]
        faults = _faults(rows, parity["rounds"], parity["requests_per_round"])
        if faults:
            return answer(
                policy, self.id, Outcome.FAILED, n=max(1, len(rows)), detail=f"Not comparable: {listed(faults)}."
            )
        return self._judged(policy, [_ratio(rows, number) for number in range(parity["rounds"])])

    def _judged(self, policy: Policy, ratios: Sequence[float]) -> GateResult:
        observed, bound = statistics.median(ratios), statistics.quantile_upper95(ratios, statistics.MEDIAN)
        outcome = decide(observed=observed, bound=bound, limit=LIMIT, comparison=Comparison.AT_MOST)
        figure = Figure(observed=observed, limit=LIMIT, comparison=Comparison.AT_MOST, unit="ratio", bound=bound)
        above = "no bound" if bound is None else f"at most {bound:.3f}"
        detail = f"Inside over outside {observed:.3f} ({above} at 95 %) over {len(ratios)} rounds."
        return answer(
            policy, self.id, outcome, n=len(ratios), detail=detail, figure=figure, reason_code="bound_outside_limit"
        )


def _faults(rows: Sequence[Mapping[str, Any]], rounds: int, requests: int) -> list[str]:
    """Why the rows cannot be compared; empty where they can."""
    found = [
        f"{row['side']} round {row['round']} request {row['index']}: {row['outcome']}"
        for row in rows
        if row["outcome"] != "ok"
    ]
    planned = {(number, side, index) for number in range(rounds) for side in SIDES for index in range(requests)}
    spoken = [(row["round"], row["side"], row["index"]) for row in rows]
    if len(spoken) != len(set(spoken)) or set(spoken) != planned:
        found.append("rows are missing, doubled or not planned")
    firsts = {row["round"]: row["side"] for row in rows if row["position"] == 0}
    if any(firsts.get(number) != SIDES[number % 2] for number in range(rounds)):
        found.append("the rounds do not alternate")
    found += [f"round {number} request {index}: other samples inside" for number, index in _unequal(rows)]
    return found


def _unequal(rows: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    kept: dict[tuple[int, int], set[tuple[Any, ...]]] = {}
    for row in rows:
        key = (row["round"], row["index"])
        kept.setdefault(key, set()).add((row["workload_id"], row["seed"], row["samples"], row["pcm_sha256"]))
    return sorted(key for key, values in kept.items() if len(values) != 1)


def _ratio(rows: Sequence[Mapping[str, Any]], number: int) -> float:
    outside, inside = (
        statistics.median([_factor(row) for row in rows if row["round"] == number and row["side"] == side])
        for side in SIDES
    )
    return inside / outside


def _factor(row: Mapping[str, Any]) -> float:
    """Wall time over audio time of one request."""
    seconds: float = (row["end_ns"] - row["t0_ns"]) / 1e9
    audio: float = row["samples"] / SAMPLES_PER_SECOND
    return seconds / audio
