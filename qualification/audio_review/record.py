"""The record of an audio review: every figure, what gave it, the policy in force and the checks that follow.

`found_in` reads one back as the checks see it, so that they can be answered again from the record alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

from qualification import paths, schema
from qualification.audio_review import programs
from qualification.audio_review.checks import Found, judge
from qualification.audio_review.figures import ClipReview, from_samples
from qualification.audio_review.layer import SCHEMA
from qualification.audio_review.policy import ReviewPolicy
from qualification.audio_review.programs import Programs, Say
from qualification.audio_review.recogniser import Recogniser
from qualification.audio_review.seams import Seams, Sensitivity
from qualification.errors import BundleError
from qualification.evidence_view import EvidenceView

DISTRIBUTION: Final = "tts-assay"


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked for: a policy, a mounted recogniser or none, programs to leave out, and who is told of progress."""

    policy: ReviewPolicy
    say: Say
    recogniser: Recogniser | None = None
    without: frozenset[str] = frozenset()


def make(evidence: EvidenceView, request: Request) -> dict[str, Any]:
    """Review every stored utterance of a bundle.

    Raises:
        BundleError: it stored none; else as `EvidenceView` does.
    """
    head = {
        "schema": schema.urn(SCHEMA),
        "run_id": evidence.run["run_id"],
        "manifest_sha256": evidence.sha256(paths.MANIFEST),
        "subject": subject_of(evidence),
    }
    policy, recogniser = request.policy, request.recogniser
    request.say("audio review: samples and packets")
    clips, seams = from_samples(evidence, policy.limits)
    if not clips:
        raise BundleError("the bundle has no stored utterance; nothing can be reviewed")
    asked = Programs(evidence=evidence, policy=policy, recogniser=recogniser, without=request.without, say=request.say)
    found = Found(
        clips=asked.ask(clips),
        seams=seams,
        absent=asked.absent,
        subject=head["subject"],
        repeatable=asked.repeatable,
        recogniser=recogniser.to_json() if recogniser else None,
    )
    return {
        **head,
        "made_utc": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}Z",
        "harness": {"name": DISTRIBUTION, "version": programs.version_of(DISTRIBUTION) or "not installed"},
        "policy": policy.document,
        "programs": [{"name": name, "version": version} for name, version in asked.versions().items()],
        "models": [model.to_json() for model in asked.models],
        "resampler": programs.resampler(),
        "recogniser": found.recogniser,
        "absent": [{"name": name, "why": why} for name, why in sorted(found.absent.items())],
        "repeatable": found.repeatable,
        "clips": [clip.to_json() for clip in found.clips],
        "seams": seams_json(seams),
        "checks": [result.to_json() for result in judge(policy, found)],
    }


def subject_of(evidence: EvidenceView) -> str:
    """Name and tier of the model that spoke, as its hashes say."""
    identity = evidence.document(paths.IDENTITY)
    return f"{identity['model']['id'] if identity['model'] else 'unknown'} ({identity['tier']})"


def found_in(record: Mapping[str, Any]) -> Found:
    """What the checks of a record looked at; the record is of its schema."""
    return Found(
        clips=tuple(ClipReview.from_json(item) for item in record["clips"]),
        seams=_seams(record["seams"]),
        absent={item["name"]: item["why"] for item in record["absent"]},
        subject=record["subject"],
        repeatable=record["repeatable"],
        recogniser=record["recogniser"],
    )


def seams_json(seams: Seams) -> dict[str, Any]:
    """The object `seams` of the record."""
    return {**asdict(seams), "sensitivity": [asdict(item) for item in seams.sensitivity]}


def _seams(document: Mapping[str, Any]) -> Seams:
    sensitivity = tuple(Sensitivity(**item) for item in document["sensitivity"])
    return Seams(**{**document, "sensitivity": sensitivity})
