"""Does every component of the image carry a licence that the policy allows, or a dated waiver that names it?

Unknown is not allowed. Components that are listed as skipped have no licence of their own; they are counted and
named, never silently passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from qualification import spdx
from qualification.evidence_view import EvidenceView
from qualification.gates.answers import answer, listed
from qualification.gates.container_evidence import container_document, unperformed
from qualification.gates.sbom_evidence import Component, bill_of_materials
from qualification.policy import Policy
from qualification.results import GateResult, Outcome


@dataclass(frozen=True, kw_only=True)
class SbomLicencesGate:
    """Every component of `sbom/image.cdx.json` against the policy's allow-list, on the day of the run."""

    id: str = "sbom.licences"

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult:
        """Decide on each component by itself."""
        document = container_document(evidence)
        if (early := unperformed(policy, self.id, document)) is not None:
            return early
        bill = bill_of_materials(evidence)
        if bill is None:
            detail = "There is no bill of materials to read licences from."
            return answer(
                policy, self.id, Outcome.NOT_PERFORMED, n=0, detail=detail, reason_code="no_bill_of_materials"
            )
        day = date.fromisoformat(evidence.run["started_utc"][:10])
        judged = [component for component in bill.components if component.skipped is None]
        skipped = len(bill.components) - len(judged)
        open_ = [component for component in judged if not _allowed(component, policy)]
        waived = [component for component in open_ if _waived(component, self.id, policy, day)]
        denied = [component for component in open_ if component not in waived]
        if denied or not judged:
            named = listed(
                f"{component.kind} {component.name}: {component.licence or 'no licence found'}" for component in denied
            )
            text = f"{len(denied)} of {len(judged)} are not allowed: {named}." if denied else "No component was judged."
            return answer(policy, self.id, Outcome.FAILED, n=len(judged), detail=text)
        by_waiver = f", {len(waived)} by waiver ({listed(component.name for component in waived)})" if waived else ""
        text = (
            f"{len(judged)} components have an allowed licence{by_waiver}; {skipped} lie inside wheels and are skipped."
        )
        return answer(policy, self.id, Outcome.PASSED, n=len(judged), detail=text)


def _allowed(component: Component, policy: Policy) -> bool:
    expression = component.licence
    return expression is not None and spdx.is_allowed(
        expression, policy.licences_allowed, policy.licence_exceptions_allowed
    )


def _waived(component: Component, gate: str, policy: Policy, day: date) -> bool:
    return any(
        waiver.gate == gate and waiver.subject == component.name and waiver.holds(day) for waiver in policy.waivers
    )
