"""Does building the same commit again give the same digests?"""

from __future__ import annotations

from dataclasses import dataclass

from qualification.evidence_view import EvidenceView
from qualification.gates.answers import answer, listed
from qualification.gates.container_evidence import container_document, unperformed
from qualification.policy import Policy
from qualification.results import GateResult, Outcome


@dataclass(frozen=True, kw_only=True)
class ContainerReproducibleGate:
    """The builds of the build report, compared again here."""

    id: str = "container.reproducible"

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult:
        """Equal digests of at least two builds."""
        document = container_document(evidence)
        if (early := unperformed(policy, self.id, document)) is not None:
            return early
        assert document is not None  # `unperformed` answers for None
        report = document["build"]
        if report is None:
            return answer(
                policy,
                self.id,
                Outcome.NOT_PERFORMED,
                n=0,
                detail="The image was not built here.",
                reason_code="not_built_here",
            )
        builds = report["builds"]
        if len(builds) < 2:
            return answer(
                policy, self.id, Outcome.NOT_PERFORMED, n=0, detail="It was built once.", reason_code="built_once"
            )
        if any(build["digests"] != builds[0]["digests"] for build in builds):
            named = listed(
                f"{item['place']} {item['path']}: {item['what']}" for item in report["reproduction"]["differences"]
            )
            return answer(
                policy,
                self.id,
                Outcome.FAILED,
                n=len(builds),
                detail=f"Builds differ: {named or 'the report does not say where'}.",
            )
        return answer(
            policy,
            self.id,
            Outcome.PASSED,
            n=len(builds),
            detail=f"{len(builds)} builds gave {builds[0]['digests']['platform']}.",
        )
