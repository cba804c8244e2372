"""The in-toto Statement over a sealed bundle: every file of the manifest and the manifest itself as subjects.

The predicate repeats what a reader asks first (run, tier, verdict, policy), so that an admission controller can decide
from the envelope alone; the verifier compares it with the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from qualification import paths
from qualification.evidence_view import EvidenceView
from qualification.manifest import digests

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "urn:assay:predicate:qualification-bundle:v1"


def build(evidence: EvidenceView) -> dict[str, Any]:
    """The statement over the bundle as its files are now. Raises as `EvidenceView` does."""
    manifest_sha256 = evidence.sha256(paths.MANIFEST)
    subjects = {path: digest.value for path, digest in digests(evidence.document(paths.MANIFEST)).items()}
    subjects[paths.MANIFEST] = manifest_sha256
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": subjects[name]}} for name in sorted(subjects)],
        "predicateType": PREDICATE_TYPE,
        "predicate": _predicate(evidence, manifest_sha256),
    }


def _predicate(evidence: EvidenceView, manifest_sha256: str) -> Mapping[str, str]:
    summary = evidence.document(paths.SUMMARY)
    return {
        "run_id": summary["run_id"],
        "tier": summary["tier"],
        "verdict": summary["verdict"]["outcome"],
        "policy_sha256": evidence.sha256(paths.POLICY),
        "manifest_sha256": manifest_sha256,
    }
