"""What the container gates read, and how they say that there was nothing to read. A tool of these gates, not a gate.

Limits here are the wire contract's own; what a policy may choose stays in the policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from qualification import paths, schema, strictjson
from qualification.evidence_view import EvidenceView
from qualification.gates.answers import answer, listed
from qualification.policy import Policy
from qualification.results import GateResult, Outcome

CONTAINER: Final = "records/container.json"
SBOM: Final = "sbom/image.cdx.json"
PROVENANCE: Final = "records/provenance.json"
READY_SECONDS: Final = 20.0
STOP_SECONDS: Final = 35.0
USER: Final = 10001
NO_CONTAINER: Final = "The subject did not run in a container that this harness started."


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that must hold. `holds` None: it could not be seen, and `name` says what."""

    name: str
    holds: bool | None


def container_document(evidence: EvidenceView) -> Mapping[str, Any] | None:
    """`records/container.json`, checked against its schema; None where the bundle has none."""
    if not evidence.exists(CONTAINER):
        return None
    document: Mapping[str, Any] = strictjson.load(paths.locate(evidence.root, CONTAINER), CONTAINER)
    schema.validate("container", document, CONTAINER)
    return document


def unperformed(policy: Policy, gate: str, document: Mapping[str, Any] | None) -> GateResult | None:
    """The result where no container ran at all: no record, no engine, or a fault before the image ran; else None."""
    if document is None:
        return answer(policy, gate, Outcome.NOT_PERFORMED, n=0, detail=NO_CONTAINER, reason_code="no_container")
    if not document["performed"]:
        detail = document["findings"][0]["detail"] if document["findings"] else NO_CONTAINER
        return answer(policy, gate, Outcome.NOT_PERFORMED, n=0, detail=detail, reason_code="no_container_engine")
    return None


def faulted(policy: Policy, gate: str, document: Mapping[str, Any], part: str) -> GateResult:
    """The result where `part` of the record was not reached: the findings say why."""
    named = (
        listed(f"{finding['code']}: {finding['detail']}" for finding in document["findings"]) or "no finding says why"
    )
    return answer(policy, gate, Outcome.FAILED, n=1, detail=f"The run ended before {part} was seen ({named}).")


def judged(policy: Policy, gate: str, checks: Iterable[Check], passed: str) -> GateResult:
    """Failed by the first broken checks, inconclusive by unseen ones, else passed with their number."""
    every = list(checks)
    broken = [check.name for check in every if check.holds is False]
    if broken:
        return answer(policy, gate, Outcome.FAILED, n=len(every), detail=f"Not so: {listed(broken)}.")
    unseen = [check.name for check in every if check.holds is None]
    if unseen:
        detail = f"Could not be seen: {listed(unseen)}."
        return answer(policy, gate, Outcome.INCONCLUSIVE, n=len(every), detail=detail, reason_code="not_seen_inside")
    return answer(policy, gate, Outcome.PASSED, n=len(every), detail=passed)
