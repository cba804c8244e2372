"""Are the model files the pinned ones? Judged again from what was found, never from the outcome that was written down.

Weights and configuration are two gates over the same files: the first is about tensors, the second about everything
else that the pins name. An endpoint has no files here, so nothing was checked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from qualification import identity, paths
from qualification.evidence_view import EvidenceView
from qualification.gates.answers import answer, listed
from qualification.pins import WEIGHTS, read_pins
from qualification.policy import Policy
from qualification.results import GateResult, Outcome


@dataclass(frozen=True, kw_only=True)
class IdentityGate:
    """`covers` chooses files by role; all of them must match their pin or be acceptable without one."""

    id: str
    covers: Callable[[str], bool]

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult:
        """Judge the files of `identity.json` against the bundle's pins."""
        document = evidence.document(paths.IDENTITY)
        judgement = identity.judge_document(document, read_pins(evidence.document(paths.PINS), paths.PINS))
        findings = [finding for finding in judgement.findings if self.covers(identity.role_of(finding.path))]
        if not judgement.findings:
            detail = "No model directory was given, so no file could be hashed."
            return answer(policy, self.id, Outcome.NOT_PERFORMED, n=0, detail=detail, reason_code="no_model_files")
        if judgement.model is None:
            return answer(policy, self.id, Outcome.FAILED, n=len(findings), detail="The files fit no pinned model.")
        bad = [finding for finding in findings if finding.outcome not in identity.ACCEPTABLE]
        matched = sum(1 for finding in findings if finding.outcome == "matched")
        if bad or not matched:
            detail = listed(f"{finding.path}: {finding.detail}" for finding in bad) or "No pinned file was found."
            return answer(policy, self.id, Outcome.FAILED, n=len(findings), detail=detail)
        unpinned = len(findings) - matched
        detail = f"{matched} files match the pins of {judgement.model.id}"
        detail += f"; {unpinned} more have no public digest and are recorded." if unpinned else "."
        return answer(policy, self.id, Outcome.PASSED, n=matched, detail=detail)


WEIGHTS_GATE = IdentityGate(id="identity.weights", covers=lambda role: role == WEIGHTS)
CONFIG_GATE = IdentityGate(id="identity.config", covers=lambda role: role != WEIGHTS)
