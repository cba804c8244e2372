"""What was added after sealing: listening reviews below `layers/`, each in a layer of its own.

1. Nothing but review layers lies there, each with its record and its statement and nothing else.
2. The record is strict JSON of its schema, and the directory is named after its digest.
3. The envelope is of its schema, and its payload is the statement that the record amounts to.
4. A reviewer's key that the caller gave has signed it; without any such key that is left open, with a note.
5. The record is a full, blind review of this bundle (see `qualification.listening.judging`).
6. No sitting is there twice: one session, and for each comparison one reviewer and one key, count once.

The first layer is not changed by any of this: its gate `review.listening` was sealed before anybody listened. A layer
that was taken out leaves no trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from qualification import paths, signing, strictjson
from qualification.errors import QualificationError
from qualification.evidence_view import EvidenceView
from qualification.listening import layer, ratings
from qualification.listening.judging import SINGLE, position_of, problems
from qualification.verify.findings import Finding
from qualification.verify.trust import Trust

Record = Mapping[str, Any]


def check(evidence: EvidenceView, trust: Trust) -> Iterator[Finding]:
    """Findings of the six steps, layer by layer."""
    seen: list[tuple[str, Record, tuple[str, ...]]] = []
    for name, files in sorted(layer.files_by_layer(evidence).items()):
        if not layer.is_name(name) or not files <= layer.FILES:  # 1
            yield Finding(code="layer.unknown", file=name, detail="no review layer, or with files that belong to none")
        elif files < layer.FILES:
            missing = ", ".join(sorted(layer.FILES - files))
            yield Finding(code="layer.incomplete", file=name, detail=f"a review without its {missing}")
        else:
            yield from _of_layer(evidence, trust, name)
            yield from _twice(evidence, trust, name, seen)


def summary(evidence: EvidenceView, trust: Trust, findings: Iterable[Finding]) -> ratings.Reviews:
    """What the reviews say that nothing in `findings` refuses and that a given reviewer's key has signed."""
    refused = {_layer_of(finding.file) for finding in findings if finding.refuses}
    found = layer.files_by_layer(evidence)
    whole = [name for name, files in sorted(found.items()) if layer.is_name(name) and files == layer.FILES]
    counted = [name for name in whole if name not in refused and _signers(evidence, trust, name)]
    records = [layer.read(evidence, name) for name in counted]
    positioned = [(position, record) for record in records if (position := position_of(evidence, record)) is not None]
    return ratings.summarise(positioned, uncounted=len(found) - len(positioned))


def same_sitting(one: Record, other: Record) -> bool:
    """Whether two records are one session, or one reviewer's answers to the same comparison."""
    if one["session"] == other["session"]:
        return True
    return one["reviewer"] == other["reviewer"] and _comparison(one) == _comparison(other)


def _of_layer(evidence: EvidenceView, trust: Trust, name: str) -> Iterator[Finding]:
    path, signed = f"{name}/{layer.RECORD}", f"{name}/{paths.STATEMENT}"
    try:
        record = layer.read(evidence, name)  # 2
    except QualificationError as error:
        yield Finding(code="layer.malformed", file=path, detail=str(error))
        return
    if layer.name_of(paths.locate(evidence.root, path).read_bytes()) != name:
        yield Finding(code="layer.name", file=path, detail="the layer is not named after this record's digest")
    try:
        payload = signing.payload_of(layer.read_envelope(evidence, name))  # 3
        signers = _signers(evidence, trust, name)
    except QualificationError as error:
        yield Finding(code="layer.signature", file=signed, detail=str(error))
        return
    if payload != strictjson.dumps(layer.statement(record)):
        yield Finding(code="layer.statement", file=signed, detail="what was signed is not the record that lies here")
    if not trust.reviewer_keys:  # 4
        detail = "signed, but no reviewer's key was given: nothing is said of who listened, and it is not counted"
        yield Finding(code="layer.unchecked", file=signed, detail=detail, refuses=False)
    elif not signers:
        yield Finding(code="layer.untrusted", file=signed, detail="no given reviewer's key has signed this review")
    for code, detail in problems(evidence, record):  # 5
        yield Finding(code=code, file=path, detail=detail)
    if record["mode"] != SINGLE:
        detail = "the other bundle's clips do not lie here: their hashes are its own verifier's business"
        yield Finding(code="layer.other-bundle", file=path, detail=detail, refuses=False)


def _twice(
    evidence: EvidenceView, trust: Trust, name: str, seen: list[tuple[str, Record, tuple[str, ...]]]
) -> Iterator[Finding]:
    """Sixth step; a layer that cannot be read is the business of the others."""
    try:
        record, signers = layer.read(evidence, name), _signers(evidence, trust, name)
    except QualificationError:
        return
    for other, earlier, keys in seen:
        one_key = set(signers) & set(keys) and _comparison(record) == _comparison(earlier)
        if one_key or same_sitting(record, earlier):
            yield Finding(code="layer.duplicate", file=f"{name}/{layer.RECORD}", detail=f"the sitting of {other} again")
    seen.append((name, record, signers))


def _comparison(record: Record) -> tuple[str, ...]:
    """What was compared: one manifest, or two."""
    return tuple(sorted(bundle["manifest_sha256"] for bundle in record["bundles"]))


def _signers(evidence: EvidenceView, trust: Trust, name: str) -> tuple[str, ...]:
    return signing.signers(layer.read_envelope(evidence, name), trust.reviewer_keys)


def _layer_of(path: str) -> str:
    return "/".join(path.split("/")[:2])
