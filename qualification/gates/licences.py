"""Does everything that the subject is made of carry a licence that the policy allows?

Each recorded expression is held against the policy's allow-list again; the decision that was written down is not
believed. What has no expression, or one that is not allowed, passes only under a dated waiver of the policy that
names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from qualification import paths, spdx
from qualification.evidence_view import EvidenceView
from qualification.gates.answers import answer, listed
from qualification.licence_sources import normal_name
from qualification.policy import Policy
from qualification.results import GateResult, Outcome

BESIDE = "installed"  # lies beside the subject; nothing of the subject's leads to it


@dataclass(frozen=True, kw_only=True)
class LicenceGate:
    """One list of `licences.json`; `nothing` says why the list may be empty."""

    id: str
    part: str
    reason_code: str
    nothing: str

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult:
        """Decide on every record of the list that the subject is made of."""
        document = evidence.document(paths.LICENCES)
        records = [record for record in document[self.part] if record["scope"] != BESIDE]
        if not records:
            return answer(
                policy, self.id, Outcome.NOT_PERFORMED, n=0, detail=self.nothing, reason_code=self.reason_code
            )
        day = date.fromisoformat(document["decided_on"])
        open_ = [record for record in records if not _allowed(record, policy)]
        waived = [record["name"] for record in open_ if _waived(record["name"], self.id, policy, day)]
        denied = [record for record in open_ if record["name"] not in waived]
        if denied:
            detail = listed(f"{record['name']}: {record['expression'] or 'no licence found'}" for record in denied)
            text = f"{len(denied)} of {len(records)} are not allowed: {detail}."
            return answer(policy, self.id, Outcome.FAILED, n=len(records), detail=text)
        text = f"{len(records)} have a licence that the policy allows"
        text += f", {len(waived)} of them by waiver: {listed(waived)}." if waived else "."
        return answer(policy, self.id, Outcome.PASSED, n=len(records), detail=text)


def _allowed(record: Mapping[str, Any], policy: Policy) -> bool:
    expression = record["expression"]
    return expression is not None and spdx.is_allowed(
        expression, policy.licences_allowed, policy.licence_exceptions_allowed
    )


def _waived(name: str, gate: str, policy: Policy, day: date) -> bool:
    return any(
        waiver.gate == gate
        and waiver.subject is not None
        and normal_name(waiver.subject) == normal_name(name)
        and waiver.holds(day)
        for waiver in policy.waivers
    )


ENVIRONMENT_GATE = LicenceGate(
    id="licences.environment",
    part="distributions",
    reason_code="no_environment_read",
    nothing="The subject's environment could not be read: an endpoint, or an image without an interpreter.",
)
MODEL_GATE = LicenceGate(
    id="licences.model",
    part="model_files",
    reason_code="no_model_files",
    nothing="No model directory was given, so there is no file to look for a licence of.",
)
