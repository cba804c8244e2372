"""A small, complete, honest-looking bundle, made without an engine: the thing that the tampers change.

Its times are simulated on a schedule that a real run could have had, its audio is integer arithmetic, and everything
else goes through the same writer as a real run, with the real gates. It proves nothing of any engine: it exists so that
each check of the verifier can be seen to fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from qualification import paths, signing
from qualification.bundle import BundleWriter
from qualification.gates.table import GATES
from qualification.sessions import sampler_path, session_path
from qualification.tamper.good_documents import (
    MS,
    RUN_ID,
    make_environment,
    make_identity,
    make_licences,
    make_phases,
    make_policy,
    make_run,
    make_sampler,
    make_session,
    make_workload,
    utc,
)
from qualification.tamper.good_requests import GAP, make_record, make_telemetry, pcm_of
from qualification.verify.trust import Trust

__all__ = ["RUN_ID", "Good", "build"]


@dataclass(frozen=True, kw_only=True)
class Good:
    """The bundle, the keys of its signer and of a listener, and what a verifier of it trusts."""

    root: Path
    key: Ed25519PrivateKey
    reviewer: Ed25519PrivateKey
    trust: Trust


def build(root: Path) -> Good:
    """Write, seal and sign the bundle at `root`, which must not exist."""
    pair, listener = signing.generate(), signing.generate()
    policy, (pins, identity_document) = make_policy(), make_identity()
    writer = BundleWriter.create(root)
    clock = _Clock(now=0)
    phases = [
        clock.phase("idle", "idle machine, before the subject", 400 * MS),
        clock.phase("setup", "start the subject", 500 * MS),
    ]
    watched = clock.now
    run = make_run()
    writer.document(session_path(1), make_session(run, clock.now))
    for profile in run["profiles"]:
        phases += _profile(writer, profile, clock)
    run["ended_utc"] = utc(clock.now)
    documents = {
        paths.RUN: run,
        paths.POLICY: policy,
        paths.PINS: pins,
        paths.WORKLOAD: make_workload(),
        paths.IDENTITY: identity_document,
        paths.LICENCES: make_licences(),
        paths.ENVIRONMENT: make_environment(),
        paths.PHASES: make_phases(phases),
    }
    for path, document in documents.items():
        writer.document(path, document)
    samples = make_telemetry(watched, clock.now + 100 * MS)
    writer.telemetry(samples)
    writer.document(sampler_path(1), make_sampler(len(samples), samples[-1].at_ns))
    key = signing.private_key(pair.private_pem, "private key")
    writer.seal(GATES, key=key)
    reviewer = signing.private_key(listener.private_pem, "reviewer's key")
    trust = Trust(
        policy=policy,
        pins=pins,
        keys=(signing.trusted_key(pair.public_pem, "public key"),),
        reviewer_keys=(signing.trusted_key(listener.public_pem, "reviewer's public key"),),
    )
    return Good(root=root, key=key, reviewer=reviewer, trust=trust)


@dataclass(kw_only=True)
class _Clock:
    now: int

    def phase(self, kind: str, name: str, length: int, **more: Any) -> dict[str, Any]:
        start, self.now = self.now, self.now + length
        values = {"kind": kind, "name": name, "profile": None, "round": None, "requests": None, **more}
        edges = {"start_ns": start, "end_ns": self.now, "start_utc": utc(start), "end_utc": utc(self.now)}
        return {**values, **edges}


def _profile(writer: BundleWriter, profile: Mapping[str, Any], clock: _Clock) -> list[dict[str, Any]]:
    """Simulate a profile: its records, its stored audio and its phases."""
    phases, records = [], []
    for turn in range(profile["rounds"]):
        for kind in ("warmup", "measure"):
            planned = profile["warmup_requests"] if kind == "warmup" else len(profile["entries"]) * profile["repeats"]
            if planned == 0:
                continue
            made = [make_record(profile, kind, turn, index, clock.now) for index in range(planned)]
            records += made
            length = max(record.end_ns for record in made) - clock.now + GAP
            name = f"{profile['name']}: {kind}"
            phases.append(clock.phase(kind, name, length, profile=profile["name"], round=turn, requests=planned))
    writer.records(profile["samples"], records)
    for record in records:
        if record.audio is not None:
            writer.audio(record.audio, pcm_of(record.workload_id, record.seed))
    return phases
