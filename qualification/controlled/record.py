"""`schedule.json`: what was planned, what was tried, what both sides were asked, how they delivered and how steadily.

Everything but the attempts is a pure function of the two bundles and of the design, and the verifier builds it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final

from qualification import schema
from qualification.bench.raw import RequestRecord
from qualification.controlled.asking import hashes
from qualification.controlled.schedule import SIDES, Planned, planned_runs
from qualification.controlled.stability import stability
from qualification.evidence_view import EvidenceView

SCHEDULE: Final = "schedule.json"
COMPARISON: Final = "comparison.json"
BUFFERED_FROM: Final = 0.9


def schedule_document(
    sides: Mapping[str, EvidenceView],
    labels: Mapping[str, str],
    *,
    comparison_id: str,
    times: tuple[str, str],
    attempts: Mapping[int, Sequence[Mapping[str, Any]]],
    design: Mapping[str, Any],
) -> dict[str, Any]:
    """The document; `times` are start and end in UTC, `attempts` those of each planned run by its number."""
    planned = planned_runs(design["profiles"], design["rounds"])
    return {
        "schema": schema.urn("controlled-schedule"),
        "comparison_id": comparison_id,
        "started_utc": times[0],
        "ended_utc": times[1],
        "design": dict(design),
        "subjects": {side: {"asked_for": labels[side], **subject_facts(sides[side])} for side in SIDES},
        "hashes": {side: hashes(sides[side]) for side in SIDES},
        "runs": [run_object(item, sides[item.subject], attempts.get(item.number, ())) for item in planned],
    }


def subject_facts(evidence: EvidenceView) -> dict[str, Any]:
    """What the raw records tell of how a subject delivers, and whether anybody knows that its utterances ended.

    `delivery` is `buffered` where the median request has its first audio in the last tenth of its wall time.
    """
    good = [record for record in evidence.records() if record.ok]
    shares = [_share(record) for record in good if record.ttfa_ns is not None and record.wall_ns > 0]
    share = median(shares) if shares else None
    unknown = sum(record.finish_reason is None for record in good)
    return {
        "run_id": evidence.run["run_id"],
        "manifest_sha256": evidence.sha256("manifest.json"),
        "delivery": "unknown" if share is None else "buffered" if share >= BUFFERED_FROM else "progressive",
        "first_audio_share": share,
        "ends": "known" if not unknown else "unknown" if unknown == len(good) else "partly_known",
    }


def run_object(planned: Planned, evidence: EvidenceView, attempts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One planned run with its attempts, and whether it was steady."""
    records = [r for r in evidence.records(profile=planned.profile) if r.round == planned.round]
    return {
        **{key: getattr(planned, key) for key in ("number", "subject", "profile", "round")},
        "requests": len(records),
        "failed": sum(not record.ok for record in records),
        "stability": stability(records).to_json(),
        "attempts": [dict(attempt) for attempt in attempts],
    }


def _share(record: RequestRecord) -> float:
    return (record.ttfa_ns or 0) / record.wall_ns
