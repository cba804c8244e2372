"""Does the bill of materials belong to this image, and does it list each part exactly once, skipped ones included?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from qualification.evidence_view import EvidenceView
from qualification.gates.answers import answer
from qualification.gates.container_evidence import Check, container_document, judged, unperformed
from qualification.gates.sbom_evidence import BillOfMaterials, bill_of_materials
from qualification.policy import Policy
from qualification.results import GateResult, Outcome

KINDS = ("own", "python", "debian", "model", "weights")


@dataclass(frozen=True, kw_only=True)
class SbomCompleteGate:
    """`sbom/image.cdx.json` against the digest, the parts that the build found, and the model files seen inside."""

    id: str = "sbom.complete"

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult:
        """Same image, same parts, each kind present."""
        document = container_document(evidence)
        if (early := unperformed(policy, self.id, document)) is not None:
            return early
        assert document is not None  # `unperformed` answers for None
        bill = bill_of_materials(evidence)
        if bill is None or document["build"] is None:
            detail = "The image was not built here, and nobody gave a bill of materials for it."
            return answer(
                policy, self.id, Outcome.NOT_PERFORMED, n=0, detail=detail, reason_code="no_bill_of_materials"
            )
        checks = [
            *_same_image(bill, document),
            *_same_parts(bill, document["build"]),
            *_same_model(bill, document["inside"]),
        ]
        skipped = sum(component.skipped is not None for component in bill.components)
        return judged(
            policy, self.id, checks, f"{len(bill.components)} components, {skipped} of them listed as skipped."
        )


def _same_image(bill: BillOfMaterials, document: Mapping[str, Any]) -> Iterator[Check]:
    image = document["image"]
    platform = image["digests"]["platform"] if image else None
    yield Check(name="it is about the platform digest that ran", holds=f"sha256:{bill.platform_sha256}" == platform)


def _same_parts(bill: BillOfMaterials, build: Mapping[str, Any]) -> Iterator[Check]:
    listed = Counter((component.kind, component.name) for component in bill.components)
    found = {(part["kind"], part["name"]) for part in build["parts"]}
    for kind, name in sorted(found):
        yield Check(name=f"{kind} {name} is listed once", holds=listed[kind, name] == 1)
    yield Check(name="nothing is listed that was not found", holds=set(listed) <= found)
    for kind in KINDS:
        yield Check(name=f"something of kind {kind} is listed", holds=any(part == kind for part, _ in listed))


def _same_model(bill: BillOfMaterials, inside: Mapping[str, Any] | None) -> Iterator[Check]:
    if inside is None or inside["model"] is None:
        return
    listed = {component.name: component.sha256 for component in bill.components if component.kind == "weights"}
    yield Check(
        name="the model's files are listed with the hashes seen inside",
        holds=listed == {item["path"]: item["sha256"] for item in inside["model"]},
    )
