"""From the journal to the bundle: the raw files of a run whose units are all whole, in the order of the plan."""

from __future__ import annotations

from dataclasses import replace

from qualification import paths
from qualification.bench.profiles import Plan
from qualification.bench.storing import audio_path, stored_ids
from qualification.bundle import BundleWriter
from qualification.journal import Journal, Unit
from qualification.workload import Workload


def units_of(plan: Plan) -> tuple[Unit, ...]:
    """The units of a plan in the order in which one subject alone runs them."""
    return tuple(Unit(profile=profile.name, round=turn) for profile in plan.profiles for turn in range(profile.rounds))


def assemble(journal: Journal, plan: Plan, workload: Workload, bundle: BundleWriter) -> None:
    """Write `samples/*.jsonl` and, where anything was sampled, `telemetry.jsonl`.

    Raises:
        BundleError: a unit is not whole.
    """
    for profile in plan.profiles:
        units = [Unit(profile=profile.name, round=turn) for turn in range(profile.rounds)]
        records = [record for unit in units for record in journal.records(unit)]
        records.sort(key=lambda record: (record.round, record.measured, record.index))
        stored = stored_ids(plan.parameters.store_audio, records, workload)
        bundle.records(
            profile.samples,
            [replace(r, audio=audio_path(r)) if r.request_id in stored else r for r in records],
        )
    telemetry = journal.all_telemetry()
    if telemetry:
        bundle.raw_bytes(paths.TELEMETRY, b"".join(telemetry))
