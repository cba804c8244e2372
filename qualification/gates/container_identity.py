"""Is the evidence about one image digest and nothing else, with the model's files as they were verified?

1. The reference's digest is the index or the manifest that was followed by its bytes.
2. The engine's own id is the configuration that the manifest names.
3. `run.json` names the same digests.
4. The files of the model inside the image hash to what `identity.json` found, belong to root and are 0444.
5. Where the image is ours, the build report's digests are these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from qualification import paths
from qualification.evidence_view import EvidenceView
from qualification.gates.container_evidence import Check, container_document, faulted, judged, unperformed
from qualification.policy import Policy
from qualification.results import GateResult

KEPT = ("index", "platform", "config")


@dataclass(frozen=True, kw_only=True)
class ContainerIdentityGate:
    """The digests of `records/container.json` against each other, `run.json` and `identity.json`."""

    id: str = "container.identity"

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult:
        """Follow the numbered list of the module."""
        document = container_document(evidence)
        if (early := unperformed(policy, self.id, document)) is not None:
            return early
        assert document is not None  # `unperformed` answers for None
        if document["image"] is None:
            return faulted(policy, self.id, document, "an image")
        identity = evidence.document(paths.IDENTITY)
        checks = [*_digests(document), *_run(document, evidence.run), *_model(document, identity), *_build(document)]
        name = document["image"]["digests"]["platform"]
        return judged(policy, self.id, checks, f"One image throughout: platform {name}.")


def _digests(document: Mapping[str, Any]) -> Iterator[Check]:
    image = document["image"]
    digests = image["digests"]
    seen = document["digest_proof"] is not None and document["digest_proof"]["method"] == "hashed_documents"
    yield Check(name="manifest and index followed by their bytes", holds=True if seen else None)
    yield Check(
        name="the reference's digest is the index or the manifest",
        holds=_known(seen, image["reference_digest"] in (digests["index"], digests["platform"])),
    )
    yield Check(
        name="the engine's id is the configuration digest", holds=_known(seen, digests["local_id"] == digests["config"])
    )


def _run(document: Mapping[str, Any], run: Mapping[str, Any]) -> Iterator[Check]:
    told = run["subject"]["image"]
    yield Check(
        name="run.json says that a container ran", holds=run["subject"]["kind"] == "container" and told is not None
    )
    for name in KEPT if told is not None else ():
        yield Check(
            name=f"run.json names the same {name} digest", holds=told[name] == document["image"]["digests"][name]
        )


def _model(document: Mapping[str, Any], identity: Mapping[str, Any]) -> Iterator[Check]:
    inside = document["inside"]
    files = inside["model"] if inside is not None else None
    if files is None:
        yield Check(name="the model's files inside the image", holds=None)
        return
    found = {item["path"]: item["sha256"] for item in files}
    expected = {item["path"]: item["sha256"] for item in identity["files"] if item["kind"] != "absent"}
    yield Check(name="the model's files inside are those of identity.json", holds=bool(found) and found == expected)
    for item in files:
        proper = (item["kind"], item["mode"], item["uid"], item["gid"]) == ("file", "0444", 0, 0)
        yield Check(name=f"{item['path']} is a regular file of root with mode 0444", holds=proper)


def _build(document: Mapping[str, Any]) -> Iterator[Check]:
    if document["build"] is not None:
        for name in KEPT:
            yield Check(
                name=f"the build report has this {name} digest",
                holds=document["build"]["digests"][name] == document["image"]["digests"][name],
            )


def _known(seen: bool, holds: bool) -> bool | None:
    return holds if seen else None
