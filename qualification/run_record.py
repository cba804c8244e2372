"""The document `run.json`: who ran what, when, from which source, under which plan.

It is written when the measurements have ended, from what was in force then. Paths of the machine are left out:
evidence travels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, date, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from qualification.bench.phases import utc_now
from qualification.bench.profiles import Plan
from qualification.inputs import Inputs, Options
from qualification.schema import urn
from qualification.source_state import SourceState
from qualification.subject import Subject

DISTRIBUTION = "tts-assay"
UNKNOWN = "unknown"


def run_document(
    inputs: Inputs,
    *,
    plan: Plan,
    subject: Mapping[str, Any],
    sessions: int,
    tier: str,
    source: SourceState,
    started_utc: str,
) -> dict[str, Any]:
    """The document, ending now; `subject` as the last of its `sessions` found it."""
    return {
        "schema": urn("run"),
        "run_id": inputs.run_id,
        "started_utc": started_utc,
        "ended_utc": utc_now(),
        "harness": harness(),
        "source": source.to_json(),
        "subject": dict(subject),
        "sessions": sessions,
        "tier": tier,
        "profiles": [profile.to_json() for profile in plan.profiles],
        "parameters": asdict(plan.parameters),
        "gates_selected": list(inputs.gates_selected) if inputs.gates_selected is not None else None,
    }


def harness() -> dict[str, str]:
    """The program that runs: the `harness` object of `run.json`."""
    return {"name": DISTRIBUTION, "version": _version()}


def subject_document(subject: Subject, options: Options, image: Mapping[str, Any] | None) -> dict[str, Any]:
    """The `subject` object of `run.json`. Precision and device are what the subject reports, else what it was told;
    `image` names the digests that ran, None where no container did."""
    said = subject.capabilities
    return {
        "kind": subject.kind,
        "model": said.model,
        "precision": said.precision or options.precision or UNKNOWN,
        "device": said.device or options.device or UNKNOWN,
        "endpoint": subject.target.url,
        "command": [_without_directory(word) for word in subject.command],
        "image": dict(image) if image is not None else None,
        "max_concurrent_requests": said.max_concurrent_requests,
        "leaves_open": sorted(said.leaves_open),
    }


def roots() -> tuple[str, ...]:
    """The requirement that makes up the environment of a qualification; none where it is not installed."""
    try:
        metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return ()
    return (f"{DISTRIBUTION}[engine,harness]",)


def today() -> date:
    """The day in UTC."""
    return datetime.now(UTC).date()


def _version() -> str:
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "0+uninstalled"


def _without_directory(word: str) -> str:
    """A path keeps its name and loses its place."""
    return Path(word).name if Path(word).is_absolute() else word
