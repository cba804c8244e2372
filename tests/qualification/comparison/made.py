"""Small sealed bundles of a made-up subject: rounds, speed, noise, failures and machine as a test wants them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from qualification import paths
from qualification.bench.raw import RequestOutcome, RequestRecord
from qualification.bundle import BundleWriter
from qualification.digest import sha256_bytes
from qualification.gates.table import GATES
from qualification.sessions import sampler_path, session_path
from qualification.tamper.good_documents import (
    MS,
    START,
    make_environment,
    make_identity,
    make_licences,
    make_phases,
    make_policy,
    make_run,
    make_sampler,
    make_session,
    make_workload,
)
from qualification.tamper.good_requests import GAP, make_record, make_telemetry
from qualification.verify.trust import Trust

_BENCH = ["bench-one-en", "bench-two-en"]
Change = Callable[[dict[str, Any]], object]


@dataclass(frozen=True, kw_only=True)
class Made:
    """What a bundle shall show. `slower` stretches every time, `noise` is the share by which each varies on its own;
    `after` seconds pass before it begins; `fails` of its requests fail; `changes` edit a document by its path."""

    name: str
    rounds: int = 6
    slower: float = 1.0
    noise: float = 0.002
    after: int = 0
    fails: int = 0
    changes: Mapping[str, Change] | None = None


def trust() -> Trust:
    """What a verifier of these bundles trusts."""
    return Trust(policy=make_policy(), pins=make_identity()[0])


def make(root: Path, made: Made) -> Path:
    """Write and seal the bundle at `root`."""
    run_id = f"{made.name}-20260101-000000"
    writer = BundleWriter.create(root)
    run = make_run()
    run["profiles"] = [_planned(run["profiles"], "B1", made.rounds), _planned(run["profiles"], "B3", made.rounds)]
    run["parameters"]["store_audio"] = "none"
    now, phases = 100 * MS, []
    for profile in run["profiles"]:
        records: list[RequestRecord] = []
        for turn in range(made.rounds):
            for kind in ("warmup", "measure"):
                count = profile["warmup_requests"] if kind == "warmup" else len(profile["entries"])
                batch = [_record(made, profile, kind, turn, index, now) for index in range(count)]
                end = max(record.end_ns for record in batch) + GAP
                phases.append(_phase(kind, profile["name"], turn, count, now, end, made.after))
                now = end
                records += batch
        failing = [record.request_id for record in records if record.measured][: made.fails]
        writer.records(profile["samples"], [_failed(r) if r.request_id in failing else r for r in records])
    documents = {
        paths.RUN: {**run, "ended_utc": _utc(now, made.after), "started_utc": _utc(0, made.after)},
        paths.POLICY: make_policy(),
        paths.PINS: make_identity()[0],
        paths.WORKLOAD: make_workload(),
        paths.IDENTITY: make_identity()[1],
        paths.LICENCES: make_licences(),
        paths.ENVIRONMENT: make_environment(),
        paths.PHASES: make_phases(phases),
    }
    documents[session_path(1)] = make_session(run, 100 * MS)
    documents[paths.PHASES]["clock"]["zero_utc"] = _utc(0, made.after)
    for path, document in documents.items():
        if made.changes and path in made.changes:
            made.changes[path](document)
        if "run_id" in document:
            document["run_id"] = run_id
        writer.document(path, document)
    samples = make_telemetry(100 * MS, now + 100 * MS)
    writer.telemetry(samples)
    sampler = {**make_sampler(len(samples), samples[-1].at_ns), "run_id": run_id}
    writer.document(sampler_path(1), sampler)
    writer.seal(GATES)
    return root


def _planned(profiles: list[dict[str, Any]], name: str, rounds: int) -> dict[str, Any]:
    found = next(profile for profile in profiles if profile["name"] == name)
    return {**found, "rounds": rounds, "repeats": 1, "entries": _BENCH}


def _utc(ns: int, after: int) -> str:
    return (START + timedelta(seconds=after, microseconds=ns // 1_000)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _phase(kind: str, profile: str, turn: int, requests: int, start: int, end: int, after: int) -> dict[str, Any]:
    return {
        "kind": kind, "name": f"{profile}: {kind}", "profile": profile, "round": turn, "requests": requests,
        "start_ns": start, "end_ns": end, "start_utc": _utc(start, after), "end_utc": _utc(end, after),
    }  # fmt: skip


def _record(made: Made, profile: dict[str, Any], kind: str, turn: int, index: int, now: int) -> RequestRecord:
    record = make_record(profile, kind, turn, index, now)
    factor = made.slower * (1 + made.noise * _between(f"{made.name}/{record.request_id}"))

    def later(at: int) -> int:
        return now + round((at - now) * factor)

    start = now + round((record.t0_ns - now) * made.slower * (1 + made.noise))  # the worker's schedule, never too early

    def moved(at: int) -> int:
        return start + later(at) - later(record.t0_ns)

    assert record.headers_ns is not None
    assert record.server_metrics is not None
    return replace(
        record,
        request_id=f"{sha256_bytes(made.name.encode())[:8]}{record.request_id[8:]}",
        scheduled_ns=start,
        t0_ns=start,
        headers_ns=moved(record.headers_ns),
        end_ns=moved(record.end_ns),
        packets=tuple(replace(packet, at_ns=moved(packet.at_ns)) for packet in record.packets),
        audio=None,
        server_metrics=replace(record.server_metrics, first_audio_microseconds=None, wall_microseconds=None),
    )


def _between(name: str) -> float:
    """A draw from -1 to 1 that hangs on `name`."""
    return int(sha256_bytes(name.encode())[:8], 16) / 2**31 - 1


def _failed(record: RequestRecord) -> RequestRecord:
    return replace(
        record,
        outcome=RequestOutcome.REFUSED,
        http_status=503,
        error_code="overloaded",
        error_detail="no slot is free",
        packets=(),
        finish_reason=None,
        echoed_seed=None,
        samples=0,
        pcm_sha256=None,
        server_metrics=None,
    )
