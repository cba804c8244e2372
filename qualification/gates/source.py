"""Did the harness run from a Git commit without changes?"""

from __future__ import annotations

from dataclasses import dataclass

from qualification.evidence_view import EvidenceView
from qualification.gates.answers import answer
from qualification.policy import Policy
from qualification.results import GateResult, Outcome


@dataclass(frozen=True, kw_only=True)
class SourceGate:
    """The `source` of `run.json`: a commit, and nothing changed since."""

    id: str = "source.clean"

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult:
        """Read commit and dirty flag."""
        source = evidence.run["source"]
        if source["commit"] is None or source["dirty"] is None:
            detail = "The harness did not run from a Git checkout."
            return answer(policy, self.id, Outcome.NOT_PERFORMED, n=0, detail=detail, reason_code="no_git_checkout")
        if source["dirty"]:
            detail = f"Tracked files differ from commit {source['commit'][:12]}."
            return answer(policy, self.id, Outcome.FAILED, n=1, detail=detail)
        return answer(policy, self.id, Outcome.PASSED, n=1, detail=f"Clean at commit {source['commit'][:12]}.")
