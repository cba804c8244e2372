"""Signs a review record and adds it to a bundle as a layer; no byte that is there already is touched."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from qualification import paths, schema, signing, strictjson
from qualification.errors import BundleError, InputError
from qualification.evidence_view import EvidenceView
from qualification.listening import layer
from qualification.listening.judging import problems
from qualification.verify import layers, structure


def attach(root: Path, record_file: Path, key: Ed25519PrivateKey) -> str:
    """Check the record in `record_file` against the bundle at `root`, sign it, and return the layer's directory.

    Raises:
        InputError: the record is not strict JSON of its schema, or not a full, blind review of this bundle.
        BundleError: the bundle is not as it was sealed, or holds this review already.
    """
    evidence = EvidenceView(root)
    broken = [finding for finding in structure.check(evidence) if finding.refuses]
    if broken:
        raise BundleError(f"{broken[0].file}: {broken[0].detail}; attach reviews only to a bundle that verifies")
    record = schema.load(layer.SCHEMA, record_file)
    wrong = [f"{code}: {detail}" for code, detail in problems(evidence, record)]
    if wrong:
        raise InputError(f"{record_file.name}: {'; '.join(wrong)}; export it from this bundle's review page")
    data = strictjson.dumps(record)
    name = layer.name_of(data)
    for other in layer.files_by_layer(evidence):
        if other == name or layers.same_sitting(layer.read(evidence, other), record):
            raise BundleError(f"{other}: holds this sitting already; a reviewer counts once in each comparison")
    strictjson.write_once(root / name / layer.RECORD, data)
    envelope = signing.sign(strictjson.dumps(layer.statement(record)), key)
    strictjson.write(root / name / paths.STATEMENT, envelope)
    return name
