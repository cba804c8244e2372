"""Seals a comparison: a manifest over its two documents and the manifests of its two bundles, signed where a key is given.

The bundles keep their own manifests, which name every file of theirs; so one digest stands for all of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from qualification import paths, schema, signing, strictjson
from qualification.controlled.record import COMPARISON, SCHEDULE
from qualification.digest import sha256_file
from qualification.statement import STATEMENT_TYPE

PREDICATE_TYPE: Final = "urn:assay:predicate:controlled-comparison:v1"
LISTED: Final = (f"a/{paths.MANIFEST}", f"b/{paths.MANIFEST}", COMPARISON, SCHEDULE)


def manifest_document(root: Path, comparison_id: str) -> dict[str, Any]:
    """The document `manifest.json` of the comparison at `root`."""
    files = [
        {"path": path, "bytes": place.stat().st_size, "sha256": sha256_file(place)}
        for path in LISTED
        for place in (paths.locate(root, path),)
    ]
    return {"schema": schema.urn("controlled-manifest"), "comparison_id": comparison_id, "files": files}


def statement_document(root: Path) -> dict[str, Any]:
    """The in-toto Statement over the four files and the manifest over them."""
    manifest = schema.load("controlled-manifest", root / paths.MANIFEST)
    digests = {item["path"]: item["sha256"] for item in manifest["files"]}
    digests[paths.MANIFEST] = sha256_file(root / paths.MANIFEST)
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": digests[name]}} for name in sorted(digests)],
        "predicateType": PREDICATE_TYPE,
        "predicate": {"comparison_id": manifest["comparison_id"], "manifest_sha256": digests[paths.MANIFEST]},
    }


def seal(root: Path, comparison_id: str, key: Ed25519PrivateKey | None) -> None:
    """Write manifest and, with a key, statement; both must not exist."""
    document = manifest_document(root, comparison_id)
    schema.validate("controlled-manifest", document, paths.MANIFEST)
    strictjson.write(root / paths.MANIFEST, document)
    if key is not None:
        strictjson.write(root / paths.STATEMENT, signing.sign(strictjson.dumps(statement_document(root)), key))
