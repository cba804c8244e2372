"""Audio reviews in the report: what was added after sealing, so only a page that is drawn again has them.

The page tells what a record says; whether that is so is the verifier's business, and the section says it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qualification import paths
from qualification.audio_review import layer
from qualification.audio_review.figures import ClipReview
from qualification.evidence_view import EvidenceView
from qualification.report.words import OUTCOMES, Wording, language_name
from qualification.results import GateResult


@dataclass(frozen=True, kw_only=True)
class CheckView:
    """A check's answer, its words, and what passing does not mean."""

    result: GateResult
    wording: Wording
    worth: str


@dataclass(frozen=True, kw_only=True)
class AudioReview:
    """One layer."""

    name: str
    record: Mapping[str, Any]
    signed: bool
    checks: tuple[CheckView, ...]
    clips: tuple[ClipReview, ...]


def audio_reviews(evidence: EvidenceView) -> tuple[AudioReview, ...]:
    """Every audio review that was added, in the order of their names. Raises as `layer.read` does."""
    return tuple(
        _view(evidence, name, files)
        for name, files in sorted(layer.files_by_layer(evidence).items())
        if layer.is_name(name) and layer.RECORD in files
    )


def named(clip: ClipReview) -> str:
    """Sentence and language of an utterance."""
    return f"{clip.workload_id}, {language_name(clip.language)}"


def _view(evidence: EvidenceView, name: str, files: set[str]) -> AudioReview:
    record = layer.read(evidence, name)
    worth = {entry["id"]: entry["worth"] for entry in record["policy"]["checks"]}
    results = [GateResult.from_json(item) for item in record["checks"]]
    return AudioReview(
        name=name,
        record=record,
        signed=paths.STATEMENT in files,
        checks=tuple(
            CheckView(result=result, wording=OUTCOMES[result.outcome], worth=worth[result.id]) for result in results
        ),
        clips=tuple(ClipReview.from_json(item) for item in record["clips"]),
    )
