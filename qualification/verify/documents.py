"""Third question: is each document strict, canonical and of its schema?

1. Every JSON document and every line of raw records and telemetry is strict JSON of its schema.
2. Each lies there in canonical form, byte for byte, so that one content has one digest.
3. A document under `records/` names its schema, which must be one of this project; a provenance statement, whose form
   in-toto fixes, is known by its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from qualification import paths, schema, strictjson
from qualification.errors import QualificationError
from qualification.evidence_view import DOCUMENTS, EvidenceView
from qualification.gates.container_evidence import PROVENANCE
from qualification.verify.findings import Finding

_FOREIGN: Final = {paths.STATEMENT: "envelope", PROVENANCE: "provenance"}  # by standards that name no schema of ours


def check(evidence: EvidenceView) -> Iterator[Finding]:
    """Findings of the three steps, file by file; a file that cannot be read is one finding."""
    for path in evidence.walked.files:
        if not path.endswith((".json", ".jsonl")):
            continue
        try:
            canonical = _canonical(path, evidence)
        except QualificationError as error:
            yield Finding(code="document.malformed", file=path, detail=str(error))
            continue
        if canonical != paths.locate(evidence.root, path).read_bytes():
            detail = "not in canonical form (sorted keys, UTF-8, one newline at the end)"
            yield Finding(code="document.not-canonical", file=path, detail=detail)


def _canonical(path: str, evidence: EvidenceView) -> bytes:
    """The bytes that the content of `path` must have."""
    if path == paths.TELEMETRY:
        return b"".join(strictjson.dumps_line(sample.to_json()) for sample in evidence.telemetry)
    if path.endswith(".jsonl"):
        return b"".join(strictjson.dumps_line(record.to_json()) for record in evidence.records_in(path))
    if path in DOCUMENTS:
        return strictjson.dumps(evidence.document(path))
    document = strictjson.load(paths.locate(evidence.root, path), path)
    if path in _FOREIGN:
        schema.validate(_FOREIGN[path], document, path)
    elif path.startswith("records/"):
        schema.validate(schema.name_of(document, path), document, path)
    return strictjson.dumps(document)
