"""Fourth question: do all documents belong to this run, and policy, pins and tier to what the caller trusts?

1. Every document that names a run names this one.
2. The gate results name the commit, the image and the policy of this run, the environment its source state; an image is
   named exactly if a container ran.
3. The policy in the bundle is the one that the caller trusts.
4. The pins in the bundle are those that the caller trusts.
5. The tier is what the trusted pins give for the digests in `identity.json`, in every document that names it.
6. Every weight file of `identity.json` has a licence record.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from qualification import identity, paths, strictjson
from qualification.evidence_view import EvidenceView
from qualification.pins import WEIGHTS, read_pins
from qualification.verify.findings import Finding
from qualification.verify.trust import Trust

_NAME_A_RUN: Final = (
    paths.IDENTITY,
    paths.LICENCES,
    paths.ENVIRONMENT,
    paths.PHASES,
    paths.GATES,
    paths.SUMMARY,
    paths.MANIFEST,
)


def check(evidence: EvidenceView, trust: Trust) -> Iterator[Finding]:
    """Findings of the six steps."""
    yield from _runs(evidence)  # 1
    yield from _gates(evidence)  # 2
    if evidence.document(paths.POLICY) != trust.policy:  # 3
        detail = "not the policy that the verifier trusts; give it the policy that you accept"
        yield Finding(code="policy.untrusted", file=paths.POLICY, detail=detail)
    if evidence.document(paths.PINS) != trust.pins:  # 4
        detail = "not the pins that the verifier trusts; give it the pins that you accept"
        yield Finding(code="pins.untrusted", file=paths.PINS, detail=detail)
    yield from _tier(evidence, trust)  # 5
    yield from _licences(evidence)  # 6


def _runs(evidence: EvidenceView) -> Iterator[Finding]:
    run_id = evidence.run["run_id"]
    for path in _NAME_A_RUN:
        other = evidence.document(path).get("run_id") if evidence.exists(path) else run_id
        if other != run_id:
            yield Finding(code="binding.run", file=path, detail=f"belongs to run {other}, not to {run_id}")
    for path in (path for path in evidence.walked.files if path.startswith("records/")):
        other = strictjson.load(paths.locate(evidence.root, path), path).get("run_id", run_id)
        if other != run_id:
            yield Finding(code="binding.run", file=path, detail=f"belongs to run {other}, not to {run_id}")


def _gates(evidence: EvidenceView) -> Iterator[Finding]:
    run, gates = evidence.run, evidence.document(paths.GATES)
    subject = run["subject"]
    if gates["commit"] != run["source"]["commit"]:
        detail = f"results of commit {gates['commit']}, the run is of {run['source']['commit']}"
        yield Finding(code="binding.commit", file=paths.GATES, detail=detail)
    if evidence.document(paths.ENVIRONMENT)["source"] != run["source"]:
        yield Finding(code="binding.commit", file=paths.ENVIRONMENT, detail="another source state than the run's")
    if gates["image"] != (subject["image"]["platform"] if subject["image"] else None):
        yield Finding(code="binding.image", file=paths.GATES, detail="results of another image than the run's")
    if (subject["kind"] == "container") != (subject["image"] is not None):
        yield Finding(code="binding.image", file=paths.RUN, detail="an image is named exactly if a container ran")
    if gates["policy_sha256"] != evidence.sha256(paths.POLICY):
        yield Finding(code="binding.policy", file=paths.GATES, detail="results under another policy than the bundle's")


def _tier(evidence: EvidenceView, trust: Trust) -> Iterator[Finding]:
    judged = identity.judge_document(evidence.document(paths.IDENTITY), read_pins(trust.pins))
    for path in (paths.RUN, paths.IDENTITY, paths.SUMMARY):
        tier = evidence.document(path)["tier"]
        if tier != judged.tier:
            detail = f"claims tier {tier}; the hashes give {judged.tier}"
            yield Finding(code="tier.not-derived", file=path, detail=detail)


def _licences(evidence: EvidenceView) -> Iterator[Finding]:
    weights = {item["path"] for item in evidence.document(paths.IDENTITY)["files"] if item["role"] == WEIGHTS}
    recorded = {item["name"] for item in evidence.document(paths.LICENCES)["model_files"]}
    for path in sorted(weights - recorded):
        yield Finding(code="licences.incomplete", file=paths.LICENCES, detail=f"weight file {path} has no record")
