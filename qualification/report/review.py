"""The page on which listeners rate clips blind: one bundle clip by clip, or two bundles in pairs.

One HTML file, drawn after sealing, because it names the manifest; no request leaves it and only its own script runs. The
page hides which bundle a clip is from, and its order; whoever reads its source can find out, so blindness is the
reviewer's word. What it exports is checked and signed by `attach-review`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

from qualification import paths
from qualification.errors import InputError
from qualification.evidence_view import EvidenceView
from qualification.listening.clips import ReviewClip, pairs, review_clips
from qualification.listening.judging import SLACK_SECONDS
from qualification.report import assets
from qualification.report.voices import RIGHT_TO_LEFT
from qualification.report.words import language_name

PAGE_VERSION: Final = "1"
COMMENT_MAX: Final = 1000
SCALES: Final = (
    ("intelligibility", "Intelligibility", "How well are the words understood?"),
    ("pronunciation", "Pronunciation", "Are sounds, stress and names those of the language?"),
    ("adherence", "Instruction adherence", "Is it the voice that was described?"),
    ("naturalness", "Naturalness", "How much does it sound like a person speaking?"),
    ("artefacts", "Freedom from artefacts", "How free is it of clicks, noise, drop-outs and repeated sounds?"),
)
WORDS: Final = ("bad", "poor", "fair", "good", "excellent")


def render_review(first: EvidenceView, second: EvidenceView | None = None) -> str:
    """The whole page.

    Raises:
        InputError: nothing to rate, nothing to pair, or the same bundle twice; else as `EvidenceView` does.
    """
    bundles = [first] if second is None else [first, second]
    named = [{"run_id": bundle.run["run_id"], "manifest_sha256": bundle.sha256(paths.MANIFEST)} for bundle in bundles]
    if second is not None and named[0]["manifest_sha256"] == named[1]["manifest_sha256"]:
        raise InputError("both are the same bundle; give two, or one alone to rate its clips")
    script = assets.script("review.js")
    data = {
        "version": PAGE_VERSION,
        "mode": "single" if second is None else "ab",
        "bundles": named,
        "items": _items(bundles),
        "scales": [{"id": name, "title": title, "question": question} for name, title, question in SCALES],
        "words": WORDS,
        "slack_seconds": SLACK_SECONDS,
        "comment_max": COMMENT_MAX,
    }
    style = assets.text("report.css") + assets.text("review.css")
    return (
        assets.environment()
        .get_template("review.html.j2")
        .render(
            data=data,
            script=Markup(script),  # our own file
            style=Markup(style),  # our own file
            script_hash=assets.policy_hash(script),
        )
    )


def _items(bundles: Sequence[EvidenceView]) -> list[Mapping[str, Any]]:
    rows = pairs(*bundles) if len(bundles) == 2 else tuple((clip,) for clip in review_clips(bundles[0]))
    if not rows:
        raise InputError("the bundle has no stored utterance of a coverage or mixed sentence; nothing can be rated")
    return [_item(bundles, row) for row in rows]


def _item(bundles: Sequence[EvidenceView], row: Sequence[ReviewClip]) -> Mapping[str, Any]:
    entry = row[0].entry
    return {
        "workload_id": entry.id,
        "language": language_name(entry.language),
        "tag": entry.language,
        "direction": "rtl" if entry.language in RIGHT_TO_LEFT else "ltr",
        "text": entry.text,
        "description": entry.voice_description,
        "clips": [_clip(bundle, number, clip) for number, (bundle, clip) in enumerate(zip(bundles, row, strict=True))],
    }


def _clip(bundle: EvidenceView, number: int, clip: ReviewClip) -> Mapping[str, Any]:
    """`sha256` is the manifest's word, not the file's, so that the page notices a clip that is not the sealed one."""
    sealed = {entry["path"]: entry["sha256"] for entry in bundle.document(paths.MANIFEST)["files"]}
    if clip.path not in sealed:
        raise InputError(f"{clip.path}: not in the manifest of its bundle; verify the bundle first")
    data = paths.locate(bundle.root, clip.path).read_bytes()
    return {
        "bundle": number,
        "path": clip.path,
        "sha256": sealed[clip.path],
        "wav": base64.b64encode(data).decode("ascii"),
    }
