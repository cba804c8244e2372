"""Gates that this run could not perform, each with its reason: they exist in the policy and never read as passed."""

from __future__ import annotations

from dataclasses import dataclass

from qualification.evidence_view import EvidenceView
from qualification.gates.answers import answer
from qualification.policy import Policy
from qualification.results import GateResult, Outcome


@dataclass(frozen=True, kw_only=True)
class AbsentGate:
    """A gate that nothing in an evidence directory of this version can decide."""

    id: str
    reason_code: str
    detail: str

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult:
        """Always `not_performed`; what is needed and who owns it come from the policy."""
        return answer(policy, self.id, Outcome.NOT_PERFORMED, n=0, detail=self.detail, reason_code=self.reason_code)


ABSENT_GATES = (
    AbsentGate(
        id="comparison.official",
        reason_code="no_comparison",
        detail="The official code did not run beside the subject.",
    ),
    AbsentGate(
        id="audio.intelligibility",
        reason_code="no_recogniser",
        detail="No independent recogniser read the speech back.",
    ),
    AbsentGate(id="review.listening", reason_code="no_listeners", detail="Nobody has listened and signed."),
    AbsentGate(id="precision.int8", reason_code="one_precision", detail="Only one precision ran."),
    AbsentGate(
        id="signature",
        reason_code="answered_by_verifier",
        detail="A run cannot see the signature over its own bundle; the verifier answers this.",
    ),
)
