"""Audio reviews that were added after sealing: what of their figures can be had again without any other program.

1. The layer holds a record, perhaps a signed statement, and nothing else; it is named after the record.
2. The record is strict, canonical JSON of its schema, over this very bundle.
3. Whatever follows from samples, packets and texts alone is computed again: every such figure of every utterance.
4. So are the checks, from the record's figures and its own policy; a policy that is not the verifier's is a note.
5. A signature must be over this record, by a key that the caller gave; without one the figures of other programs are the
   word of whoever put the layer there, which is a note.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from qualification import paths, schema, signing, strictjson
from qualification.audio_review import layer, policy
from qualification.audio_review.checks import judge
from qualification.audio_review.differing import SAMPLES, differences
from qualification.audio_review.figures import from_samples, transcribed
from qualification.audio_review.policy import ReviewPolicy
from qualification.audio_review.record import found_in, seams_json, subject_of
from qualification.errors import QualificationError
from qualification.evidence_view import EvidenceView
from qualification.results import Outcome
from qualification.verify.findings import Finding
from qualification.verify.trust import Trust

OWN: Final = (
    "path", "sha256", "request_id", "workload_id", "language", "seed", "characters", "faults", "non_finite", "facts",
    "repetition", "pace",
)  # fmt: skip
Record = Mapping[str, Any]


def check(evidence: EvidenceView, trust: Trust) -> Iterator[Finding]:
    """Findings of the five steps, layer by layer."""
    for name, files in sorted(layer.files_by_layer(evidence).items()):
        if not layer.is_name(name) or not files <= layer.FILES:  # 1
            yield Finding(code="layer.unknown", file=name, detail="no audio review, or with files that belong to none")
        elif layer.RECORD not in files:
            yield Finding(code="layer.incomplete", file=name, detail=f"an audio review without its {layer.RECORD}")
        else:
            yield from _of_layer(evidence, trust, name, paths.STATEMENT in files)


def _of_layer(evidence: EvidenceView, trust: Trust, name: str, signed: bool) -> Iterator[Finding]:
    path = f"{name}/{layer.RECORD}"
    try:
        record = layer.read(evidence, name)  # 2
        rules = policy.parse(record["policy"])
    except QualificationError as error:
        yield Finding(code="layer.malformed", file=path, detail=str(error))
        return
    data = paths.locate(evidence.root, path).read_bytes()
    if layer.name_of(data) != name or data != strictjson.dumps(record):
        yield Finding(code="layer.name", file=path, detail="not canonical, or not named after this record's digest")
    if (record["manifest_sha256"], record["run_id"]) != (evidence.sha256(paths.MANIFEST), evidence.run["run_id"]):
        yield Finding(code="layer.moved", file=path, detail="a review of another bundle than this one")
        return
    yield from _signature(evidence, trust, name, record) if signed else _unsigned(name)  # 5
    yield from _figures(evidence, path, record, rules)  # 3
    yield from _checks(path, record, rules)  # 4


def _figures(evidence: EvidenceView, path: str, record: Record, rules: ReviewPolicy) -> Iterator[Finding]:
    clips, seams = from_samples(evidence, rules.limits)
    found = [clip.to_json() for clip in clips]
    for clip, told in zip(found, record["clips"], strict=False):
        if told["heard"] is not None:
            heard = transcribed(
                next(item for item in clips if item.path == clip["path"]),
                evidence.workload.entry(clip["workload_id"]).text,
                told["heard"],
            )
            yield from _differ(path, {key: told[key] for key in heard}, heard, f"{told['path']}")
    own = [{key: clip[key] for key in OWN} for clip in found]
    told_own = [{key: clip[key] for key in OWN} for clip in record["clips"]]
    yield from _differ(path, told_own, own, "clips")
    yield from _differ(path, record["seams"], seams_json(seams), "seams")
    yield from _differ(path, record["subject"], subject_of(evidence), "subject")


def _checks(path: str, record: Record, rules: ReviewPolicy) -> Iterator[Finding]:
    results = [result.to_json() for result in judge(rules, found_in(record))]
    yield from _differ(path, record["checks"], results, "checks")
    if record["policy"] != policy.load().document:
        detail = "its checks and limits are not those of this verifier; read them before you read the outcomes"
        yield Finding(code="layer.other-policy", file=path, detail=detail, refuses=False)
    counts = {outcome: [item["id"] for item in results if item["outcome"] == outcome] for outcome in Outcome}
    said = "; ".join(
        f"{outcome.replace('_', ' ')} {len(ids)}" + ("" if outcome == Outcome.PASSED else f": {', '.join(ids)}")
        for outcome, ids in counts.items()
        if ids
    )
    yield Finding(code="layer.audio-review", file=path, detail=f"automatic audio review: {said}", refuses=False)


def _differ(path: str, told: Any, found: Any, place: str) -> Iterator[Finding]:
    for difference in list(differences(told, found, SAMPLES, place))[:3]:
        yield Finding(code="layer.figure", file=path, detail=difference)


def _unsigned(name: str) -> Iterator[Finding]:
    detail = "unsigned: what other programs are said to have found is the word of whoever put it there"
    yield Finding(code="layer.unsigned", file=name, detail=detail, refuses=False)


def _signature(evidence: EvidenceView, trust: Trust, name: str, record: Record) -> Iterator[Finding]:
    file = f"{name}/{paths.STATEMENT}"
    try:
        envelope = strictjson.load(paths.locate(evidence.root, file), file)
        schema.validate("envelope", envelope, file)
        payload = signing.payload_of(envelope)
        signers = signing.signers(envelope, (*trust.keys, *trust.reviewer_keys))
    except QualificationError as error:
        yield Finding(code="layer.signature", file=file, detail=str(error))
        return
    if payload != strictjson.dumps(layer.statement(record)):
        yield Finding(code="layer.statement", file=file, detail="what was signed is not the record that lies here")
    if not (trust.keys or trust.reviewer_keys):
        yield Finding(code="layer.unchecked", file=file, detail="signed, but no key was given", refuses=False)
    elif not signers:
        yield Finding(code="layer.untrusted", file=file, detail="no given key has signed this audio review")
