"""A review layer: `layers/review-<digest>/` with the record and a signed statement, beside a bundle that stays as it is.

The directory is named after the record's SHA-256, so that layers of several reviewers can be put together by copying and
one record has one place. The statement ties the record to the manifests of the bundles whose clips were rated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from qualification import paths, schema, strictjson
from qualification.digest import sha256_bytes
from qualification.evidence_view import EvidenceView
from qualification.statement import STATEMENT_TYPE

PREDICATE_TYPE: Final = "urn:assay:predicate:listening-review:v1"
RECORD: Final = "record.json"
FILES: Final = frozenset({RECORD, paths.STATEMENT})
SCHEMA: Final = "review-record"
_NAME: Final = re.compile(rf"{paths.LAYERS_DIRECTORY}/review-[0-9a-f]{{16}}")


def name_of(record: bytes) -> str:
    """The directory of a layer, from the bytes of its record."""
    return f"{paths.LAYERS_DIRECTORY}/review-{sha256_bytes(record)[:16]}"


def is_name(directory: str) -> bool:
    """Whether a directory of the bundle is named as a review layer is."""
    return _NAME.fullmatch(directory) is not None


def files_by_layer(evidence: EvidenceView) -> dict[str, set[str]]:
    """Every directory below `layers/` that holds files and is no audio review's -> the names of these."""
    found: dict[str, set[str]] = {}
    for path in evidence.walked.files:
        directory, _, name = path.rpartition("/")
        if paths.in_layer(path) and not path.startswith(paths.AUDIO_LAYERS):
            found.setdefault(directory, set()).add(name)
    return found


def read(evidence: EvidenceView, name: str) -> dict[str, Any]:
    """The record of a layer. Raises `BundleError`, `StrictJsonError` or `SchemaError`."""
    path = f"{name}/{RECORD}"
    record: dict[str, Any] = strictjson.load(paths.locate(evidence.root, path), path)
    schema.validate(SCHEMA, record, path)
    return record


def read_envelope(evidence: EvidenceView, name: str) -> dict[str, Any]:
    """The signed envelope of a layer. Raises as `read` does."""
    path = f"{name}/{paths.STATEMENT}"
    envelope: dict[str, Any] = strictjson.load(paths.locate(evidence.root, path), path)
    schema.validate("envelope", envelope, path)
    return envelope


def statement(record: Mapping[str, Any]) -> dict[str, Any]:
    """The in-toto Statement over a record and the manifests that it names."""
    digests = {RECORD: sha256_bytes(strictjson.dumps(record))}
    digests |= {f"{item['run_id']}/{paths.MANIFEST}": item["manifest_sha256"] for item in record["bundles"]}
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": digests[name]}} for name in sorted(digests)],
        "predicateType": PREDICATE_TYPE,
        "predicate": {key: record[key] for key in ("session", "mode", "reviewer", "started_utc", "ended_utc")},
    }
