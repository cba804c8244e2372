"""Does the provenance tie this image to a clean commit, its base and its locks, without giving anything away?

It is as good as the machine that built; a signature over the bundle covers it like every other file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from qualification import paths, schema, strictjson
from qualification.evidence_view import EvidenceView
from qualification.gates.answers import answer
from qualification.gates.container_evidence import PROVENANCE, Check, container_document, judged, unperformed
from qualification.policy import Policy
from qualification.provenance import leaks
from qualification.results import GateResult, Outcome


@dataclass(frozen=True, kw_only=True)
class ProvenanceGate:
    """`records/provenance.json` against the digests that ran and the build report."""

    id: str = "provenance"

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult:
        """Same image, same inputs, clean source, no leak."""
        document = container_document(evidence)
        if (early := unperformed(policy, self.id, document)) is not None:
            return early
        assert document is not None  # `unperformed` answers for None
        if document["build"] is None or not evidence.exists(PROVENANCE):
            detail = "The image was not built here, and nobody gave a provenance statement for it."
            return answer(policy, self.id, Outcome.NOT_PERFORMED, n=0, detail=detail, reason_code="no_provenance")
        statement = strictjson.load(paths.locate(evidence.root, PROVENANCE), PROVENANCE)
        schema.validate("provenance", statement, PROVENANCE)
        checks = [*_image(statement, document), *_inputs(statement, document["build"]), *_source(statement)]
        return judged(policy, self.id, checks, f"Built from commit {_digests(statement)['source'][:12]}.")


def _image(statement: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[Check]:
    image = document["image"]
    platform = image["digests"]["platform"] if image else None
    yield Check(
        name="its subject is the platform digest that ran",
        holds=f"sha256:{statement['subject'][0]['digest']['sha256']}" == platform,
    )


def _inputs(statement: Mapping[str, Any], build: Mapping[str, Any]) -> Iterator[Check]:
    found = _digests(statement)
    expected = {
        "source": build["source"]["commit"],
        "base": build["base"]["digest"].removeprefix("sha256:"),
        "Dockerfile": build["dockerfile_sha256"],
        "pins.json": build["pins_sha256"],
    }
    expected |= {f"locks/{lock['name']}": lock["sha256"] for lock in build["locks"]}
    expected |= {wheel["name"]: wheel["sha256"] for wheel in build["wheels"]}
    for name, value in sorted(expected.items()):
        yield Check(name=f"it names {name} by the digest that was used", holds=found.get(name) == value)


def _source(statement: Mapping[str, Any]) -> Iterator[Check]:
    parameters = statement["predicate"]["buildDefinition"]["internalParameters"]
    yield Check(name=f"the tree was clean ({parameters['changed']} files differed)", holds=not parameters["dirty"])
    found = leaks(statement)
    yield Check(name=f"it gives nothing away ({', '.join(found) or 'nothing found'})", holds=not found)


def _digests(statement: Mapping[str, Any]) -> dict[str, str]:
    dependencies = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    return {item["name"]: next(iter(item["digest"].values())) for item in dependencies}
