"""Was the machine described well enough to know what the figures are figures of?

Every fact that the figures hang on must have been read. Competing work on an accelerator is named in the detail: it
makes the figures worse, not the description.
"""

from __future__ import annotations

from dataclasses import dataclass

from qualification import paths
from qualification.evidence_view import EvidenceView
from qualification.gates.answers import answer, listed
from qualification.policy import Policy
from qualification.results import GateResult, Outcome

_FACTS = ("architecture", "kernel", "cpu_model", "cpus", "memory_bytes", "memory_available_bytes", "load_average")


@dataclass(frozen=True, kw_only=True)
class EnvironmentGate:
    """`environment.json` holds what it has to."""

    id: str = "environment.captured"

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult:
        """Look for facts that could not be read."""
        document = evidence.document(paths.ENVIRONMENT)
        missing = [name for name in _FACTS if document["machine"][name] is None]
        if missing:
            detail = f"Could not be read: {listed(missing)}."
            return answer(
                policy, self.id, Outcome.INCONCLUSIVE, n=len(_FACTS), detail=detail, reason_code="facts_missing"
            )
        devices = document["accelerators"]["devices"]
        busy = [f"{device['name'] or device['uuid']}" for device in devices if device["competing_processes"]]
        detail = f"{len(_FACTS)} facts of the machine, {len(document['packages'])} package versions, "
        detail += f"{len(devices)} accelerators" if devices else "no accelerator"
        detail += f"; other work on: {listed(busy)}." if busy else "."
        return answer(policy, self.id, Outcome.PASSED, n=len(_FACTS) + len(devices), detail=detail)
