"""An audio review as a layer: `layers/audio-<digest>/record.json`, and a signed statement over it where a key was given.

As with a listener's review the directory is named after its record's SHA-256, and the sealed files stay byte for byte.
Without a signature the figures of models are anybody's word; those of the samples the verifier computes again either way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from qualification import paths, schema, strictjson
from qualification.digest import sha256_bytes
from qualification.evidence_view import EvidenceView
from qualification.statement import STATEMENT_TYPE

PREDICATE_TYPE: Final = "urn:assay:predicate:audio-review:v1"
RECORD: Final = "record.json"
SCHEMA: Final = "audio-review"
FILES: Final = frozenset({RECORD, paths.STATEMENT})
_NAME: Final = re.compile(rf"{paths.AUDIO_LAYERS}[0-9a-f]{{16}}")


def name_of(record: bytes) -> str:
    """The directory of a layer, from the bytes of its record."""
    return f"{paths.AUDIO_LAYERS}{sha256_bytes(record)[:16]}"


def is_name(directory: str) -> bool:
    """Whether a directory is named as an audio review is."""
    return _NAME.fullmatch(directory) is not None


def files_by_layer(evidence: EvidenceView) -> dict[str, set[str]]:
    """Every directory of an audio review -> the names of its files."""
    found: dict[str, set[str]] = {}
    for path in evidence.walked.files:
        directory, _, name = path.rpartition("/")
        if path.startswith(paths.AUDIO_LAYERS):
            found.setdefault(directory, set()).add(name)
    return found


def read(evidence: EvidenceView, name: str) -> dict[str, Any]:
    """The record of a layer. Raises `BundleError`, `StrictJsonError` or `SchemaError`."""
    path = f"{name}/{RECORD}"
    record: dict[str, Any] = strictjson.load(paths.locate(evidence.root, path), path)
    schema.validate(SCHEMA, record, path)
    return record


def statement(record: Mapping[str, Any]) -> dict[str, Any]:
    """The in-toto Statement over a record and the manifest that it names."""
    digests = {
        RECORD: sha256_bytes(strictjson.dumps(record)),
        f"{record['run_id']}/{paths.MANIFEST}": record["manifest_sha256"],
    }
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": digests[name]}} for name in sorted(digests)],
        "predicateType": PREDICATE_TYPE,
        "predicate": {"made_utc": record["made_utc"], "harness": record["harness"]},
    }
