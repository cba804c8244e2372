"""A listener's record for any bundle, as the review page exports it, and the layer that it becomes.

Nobody listened: it exists so that the checks of review layers can be seen to fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from qualification import paths, schema, signing, strictjson
from qualification.evidence_view import EvidenceView
from qualification.listening import blinding, layer
from qualification.listening.clips import pairs, review_clips
from qualification.listening.ratings import SCALES

SEED: Final = "00112233445566778899aabbccddeeff"
SESSION: Final = "5e551011-0000-4000-a000-000000000001"


def make_record(bundles: Sequence[EvidenceView], **more: Any) -> dict[str, Any]:
    """A full record over one bundle, or over the pairs of two; `more` replaces fields (seed: and what follows from it)."""
    pair, seed = len(bundles) == 2, more.get("seed", SEED)
    rows = pairs(*bundles) if pair else tuple((clip,) for clip in review_clips(bundles[0]))
    by_name = {row[0].entry.id: row for row in rows}
    items = []
    for number, name in enumerate(blinding.order(seed, by_name)):
        clips = [
            {"bundle": at, "path": clip.path, "sha256": clip.sha256, "heard": True, "ratings": _ratings(number + at)}
            for at, clip in enumerate(by_name[name])
        ]
        shown = clips[::-1] if pair and blinding.swapped(seed, name) else clips
        items.append({"workload_id": name, "clips": shown, "preference": "first" if pair else None, "comment": ""})
    return {
        "schema": schema.urn(layer.SCHEMA),
        "session": SESSION,
        "mode": "ab" if pair else "single",
        "page_version": "1",
        "reviewer": "listener-1",
        "started_utc": "2026-01-02T10:00:00.000Z",
        "ended_utc": "2026-01-02T10:20:00.000Z",
        "seed": seed,
        "bundles": [
            {"run_id": bundle.run["run_id"], "manifest_sha256": bundle.sha256(paths.MANIFEST)} for bundle in bundles
        ],
        "items": items,
        **more,
    }


def add_layer(root: Path, record: dict[str, Any], key: Ed25519PrivateKey) -> str:
    """Sign the record and put its layer into the bundle without any check; the layer's directory."""
    name = layer.name_of(strictjson.dumps(record))
    strictjson.write(root / name / layer.RECORD, record)
    strictjson.write(root / name / paths.STATEMENT, signing.sign(strictjson.dumps(layer.statement(record)), key))
    return name


def _ratings(number: int) -> dict[str, int]:
    return {scale: 1 + (number + at) % 5 for at, scale in enumerate(SCALES)}
