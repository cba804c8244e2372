"""A small, complete, honest-looking bundle, made without an engine: the thing that the tampers change.

Its times are simulated on a schedule that a real run could have had, its audio is integer arithmetic, and everything
else goes through the same writer as a real run, with the real gates. It proves nothing of any engine: it exists so that
each check of the verifier can be seen to fail.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from uuid import UUID

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from qualification import identity, paths, schema, signing
from qualification.bench.raw import (
    BYTES_PER_SAMPLE,
    SAMPLES_PER_FRAME,
    GpuSample,
    Packet,
    RequestOutcome,
    RequestRecord,
    ServerMetrics,
    TelemetrySample,
)
from qualification.bundle import BundleWriter
from qualification.digest import sha256_bytes
from qualification.gates.table import GATES
from qualification.pins import read_pins
from qualification.policy import load_policy
from qualification.verify.trust import Trust

RUN_ID: Final = "good-20260101-000000"
COMMIT: Final = "0123456789abcdef0123456789abcdef01234567"
START: Final = datetime(2026, 1, 1, tzinfo=UTC)
FRAMES: Final = 4
MS: Final = 1_000_000
GAP: Final = 30 * MS
LANGUAGES: Final = ("en", "de", "tr")


@dataclass(frozen=True, kw_only=True)
class Good:
    """The bundle, the key that signed it, and what a verifier of it trusts."""

    root: Path
    key: Ed25519PrivateKey
    trust: Trust


def build(root: Path) -> Good:
    """Write, seal and sign the bundle at `root`, which must not exist."""
    pair = signing.generate()
    policy, (pins, identity_document) = _policy(), _identity()
    writer = BundleWriter.create(root)
    clock = _Clock(now=0)
    phases = [clock.phase("setup", "start the subject", 500 * MS)]
    run = _run()
    for profile in run["profiles"]:
        phases += _profile(writer, profile, clock)
    run["ended_utc"] = _utc(clock.now)
    documents = {
        paths.RUN: run,
        paths.POLICY: policy,
        paths.PINS: pins,
        paths.WORKLOAD: _workload(),
        paths.IDENTITY: identity_document,
        paths.LICENCES: _licences(),
        paths.ENVIRONMENT: _environment(),
        paths.PHASES: _phases(phases),
    }
    for path, document in documents.items():
        writer.document(path, document)
    writer.telemetry(_telemetry(clock.now))
    key = _private(pair.private_pem)
    writer.seal(GATES, key=key)
    trusted = (signing.trusted_key(pair.public_pem, "public key"),)
    return Good(root=root, key=key, trust=Trust(policy=policy, pins=pins, keys=trusted))


@dataclass(kw_only=True)
class _Clock:
    now: int

    def phase(self, kind: str, name: str, length: int, **more: Any) -> dict[str, Any]:
        start, self.now = self.now, self.now + length
        values = {"kind": kind, "name": name, "profile": None, "round": None, "requests": None, **more}
        edges = {"start_ns": start, "end_ns": self.now, "start_utc": _utc(start), "end_utc": _utc(self.now)}
        return {**values, **edges}


def _utc(ns: int) -> str:
    return (START + timedelta(microseconds=ns // 1_000)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _profile(writer: BundleWriter, profile: Mapping[str, Any], clock: _Clock) -> list[dict[str, Any]]:
    """Simulate a profile: its records, its stored audio and its phases."""
    phases, records = [], []
    for turn in range(profile["rounds"]):
        for kind in ("warmup", "measure"):
            planned = profile["warmup_requests"] if kind == "warmup" else len(profile["entries"]) * profile["repeats"]
            if planned == 0:
                continue
            made = [_record(profile, kind, turn, index, clock.now) for index in range(planned)]
            records += made
            length = max(record.end_ns for record in made) - clock.now + GAP
            name = f"{profile['name']}: {kind}"
            phases.append(clock.phase(kind, name, length, profile=profile["name"], round=turn, requests=planned))
    writer.records(profile["samples"], records)
    for record in records:
        if record.audio is not None:
            writer.audio(record.audio, _pcm(record.workload_id, record.seed))
    return phases


def _record(profile: Mapping[str, Any], kind: str, turn: int, index: int, now: int) -> RequestRecord:
    """One request on the schedule: `concurrency` workers, each busy 100 ms a request and idle 5 ms between."""
    entries, name = profile["entries"], profile["name"]
    workload_id = entries[index % len(entries)]
    walk = index // len(entries) + turn * profile["repeats"]
    seed = _seeds(workload_id)[walk if profile["seeds"] == "rotate" else 0]
    pcm = _pcm(workload_id, seed)
    request_id = str(UUID(bytes=bytes.fromhex(sha256_bytes(f"{name}/{kind}/{turn}/{index}".encode()))[:16], version=4))
    t0 = now + GAP // 2 + index // profile["concurrency"] * 105 * MS
    arrivals = (t0 + 25 * MS, t0 + 90 * MS)
    packets = (
        _packet(at_ns=arrivals[0], sequence=0, first_frame=0, frames=1, final=False),
        _packet(at_ns=arrivals[1], sequence=1, first_frame=1, frames=FRAMES - 1, final=True),
    )
    return RequestRecord(
        request_id=request_id,
        phase=kind,
        profile=name,
        load=profile["load"],
        concurrency=profile["concurrency"],
        round=turn,
        index=index,
        workload_id=workload_id,
        language=_language(workload_id),
        seed=seed,
        outcome=RequestOutcome.OK,
        http_status=200,
        error_code=None,
        error_detail=None,
        scheduled_ns=t0,
        t0_ns=t0,
        headers_ns=t0 + 2 * MS,
        end_ns=t0 + (95 + index % 5) * MS,
        packets=packets,
        finish_reason="stop",
        echoed_seed=seed,
        samples=len(pcm) // BYTES_PER_SAMPLE,
        pcm_sha256=sha256_bytes(pcm),
        audio=f"audio/{request_id}.wav" if kind == "measure" else None,
        server_metrics=ServerMetrics(
            queue_microseconds=100,
            first_audio_microseconds=24_000,
            wall_microseconds=92_000,
            generated_codec_frames=FRAMES,
            emitted_samples=len(pcm) // BYTES_PER_SAMPLE,
            emitted_packets=len(packets),
        ),
    )


def _packet(*, at_ns: int, sequence: int, first_frame: int, frames: int, final: bool) -> Packet:
    samples = frames * SAMPLES_PER_FRAME
    return Packet(
        at_ns=at_ns,
        sequence=sequence,
        first_frame=first_frame,
        first_sample=first_frame * SAMPLES_PER_FRAME,
        frames=frames,
        samples=samples,
        bytes=samples * BYTES_PER_SAMPLE,
        final=final,
    )


def _pcm(workload_id: str, seed: int) -> bytes:
    """A triangle wave whose period hangs on text and seed; integers only."""
    period = 60 + int(sha256_bytes(f"{workload_id}/{seed}".encode())[:6], 16) % 4_000
    steps = np.arange(FRAMES * SAMPLES_PER_FRAME, dtype=np.int64)
    wave = np.abs(steps * 40 % (2 * period * 40) - period * 40) * 16_000 // (period * 40) - 8_000
    return wave.astype("<i2").tobytes()


def _seeds(workload_id: str) -> tuple[int, ...]:
    first = 100 * (1 + sorted(_SENTENCES).index(workload_id))
    return tuple(range(first, first + 8))


def _language(workload_id: str) -> str:
    return workload_id.rsplit("-", 1)[1]


_SENTENCES: Final = {
    "coverage-en": "The ferry leaves the old harbour at noon, and by evening the whole island smells of rain.",
    "coverage-de": "Am fruehen Morgen liegt dichter Nebel ueber dem See, und nur die Enten sind schon lange wach.",
    "coverage-tr": "Sabah erkenden deniz sakin olur, bir iki martı ağır ağır döner ve kayıklar uyur durur orada.",
    "bench-one-en": "A short sentence for the load profiles, with a comma in the middle and a full stop at its end.",
    "bench-two-en": "Another short sentence for the load profiles, which says nothing that anybody has to remember.",
}
_WIRE: Final = {"en": "english", "de": "german", "tr": "auto"}


def _workload() -> dict[str, Any]:
    return {
        "schema": schema.urn("workload"),
        "version": "1.0.0",
        "entries": [
            {
                "id": name,
                "kind": "coverage" if name.startswith("coverage") else "bench",
                "language": _language(name),
                "language_field": _WIRE[_language(name)],
                "claimed_by_checkpoint": _language(name) != "tr",
                "text": text,
                "voice_description": "A calm female voice with a medium pitch, speaking at a medium pace.",
                "seeds": list(_seeds(name)),
            }
            for name, text in _SENTENCES.items()
        ],
    }


def _planned(
    name: str, load: str, concurrency: int, entries: Sequence[str], repeats: int, **more: Any
) -> dict[str, Any]:
    return {
        "name": name,
        "title": f"profile {name}",
        "samples": f"samples/{name.lower()}.jsonl",
        "load": load,
        "concurrency": concurrency,
        "rate_per_second": None,
        "rounds": 1,
        "entries": list(entries),
        "repeats": repeats,
        "stop": "count",
        "seeds": "rotate",
        "warmup_requests": concurrency,
        "minimum_seconds": 0,
        **more,
    }


def _run() -> dict[str, Any]:
    bench = ("bench-one-en", "bench-two-en")
    return {
        "schema": schema.urn("run"),
        "run_id": RUN_ID,
        "started_utc": _utc(0),
        "ended_utc": _utc(0),
        "harness": {"name": "tts-assay", "version": "0"},
        "source": {"commit": COMMIT, "dirty": False},
        "subject": {
            "kind": "process",
            "model": "example/good",
            "precision": "fp32",
            "device": "cpu",
            "endpoint": "http://127.0.0.1:1",
            "command": ["engine", "serve"],
            "image": None,
            "max_concurrent_requests": 6,
        },
        "tier": "reference",
        "profiles": [
            _planned("EOS", "sustained", 2, [f"coverage-{language}" for language in LANGUAGES], 2),
            _planned("REPEAT", "sustained", 1, bench[:1], 2, seeds="first", warmup_requests=0),
            _planned("B1", "sustained", 1, bench, 3),
            _planned("B3", "sustained", 3, bench, 2, rounds=2, warmup_requests=3),
            _planned("B6", "wave", 6, bench, 3),
        ],
        "parameters": {
            "timeout_seconds": 60,
            "max_duration_seconds": 20.48,
            "store_audio": "measured",
            "telemetry_interval_ms": 80,
        },
    }


def _policy() -> dict[str, Any]:
    """The packaged policy with limits that so small a run can meet."""
    document: dict[str, Any] = json.loads(json.dumps(load_policy().document))
    rules = document["tiers"]["reference"]
    rules["counts"] = {
        "successes_per_profile": 2,
        "seconds_per_profile": 0,
        "warmup_requests": 0,
        "warmup_per_slot": 0,
    }
    rules["limits"]["eos"] = {"languages": list(LANGUAGES), "failure_rate_max": 0.5}
    rules["limits"]["audio"]["seconds_min"] = 0.1
    for limits in rules["limits"]["bench"].values():
        limits["failure_rate_max"] = 0.5
    return document


def _identity() -> tuple[dict[str, Any], dict[str, Any]]:
    """Pins of a model of two files, and the identity document of a directory that holds exactly them."""
    header = json.dumps({"weight": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    files = {"config.json": b"{}\n", "model.safetensors": len(header).to_bytes(8, "little") + header + bytes(16)}
    model = {
        "id": "example/good",
        "revision": None,
        "tier": "reference",
        "licence": "Apache-2.0",
        "source": "made for the tampers",
        "files": [
            {
                "path": path,
                "role": identity.role_of(path),
                "bytes": len(data),
                "digest": {"algorithm": "sha256", "value": sha256_bytes(data)},
                "basis": "measured",
                "inventory": None,
            }
            for path, data in files.items()
        ],
        "unpinned": [],
    }
    document = {"schema": schema.urn("pins"), "models": [model]}
    pins = read_pins(document)
    with TemporaryDirectory() as directory:
        for path, data in files.items():
            Path(directory, path).write_bytes(data)
        judgement = identity.judge(identity.survey(Path(directory), pins), pins)
    return document, identity.identity_document(RUN_ID, judgement)


def _licences() -> dict[str, Any]:
    def record(name: str, scope: str, source: str) -> dict[str, Any]:
        told = {"expression": "Apache-2.0", "source": source, "evidence": "Apache-2.0"}
        return {"name": name, "version": "1.0", "scope": scope, "decision": "allowed", "detail": "allowed", **told}

    return {
        "schema": schema.urn("licences"),
        "run_id": RUN_ID,
        "decided_on": "2026-01-01",
        "distributions": [record("example", "required", "license-expression")],
        "model_files": [record("model.safetensors", "model", "pins")],
    }


def _environment() -> dict[str, Any]:
    return {
        "schema": schema.urn("environment"),
        "run_id": RUN_ID,
        "captured_utc": _utc(0),
        "machine": {
            "architecture": "x86_64",
            "system": "Linux",
            "kernel": "6.1",
            "cpu_model": "Example CPU",
            "cpus": 2,
            "cpus_usable": 2,
            "cpu_quota": None,
            "cpu_governor": None,
            "memory_bytes": 8 << 30,
            "memory_available_bytes": 4 << 30,
            "memory_limit_bytes": None,
            "load_average": [0.1, 0.1, 0.1],
        },
        "python": {"implementation": "CPython", "version": "3.11.0"},
        "packages": [{"name": "numpy", "version": "2.0.0"}],
        "accelerators": {"probe": "nvml", "absent": None, "driver": "1", "cuda": "12", "devices": []},
        "container": {"hints": [], "seccomp_mode": None, "no_new_privileges": None},
        "source": {"commit": COMMIT, "dirty": False},
    }


def _phases(phases: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "schema": schema.urn("phases"),
        "run_id": RUN_ID,
        "clock": {"source": "monotonic", "zero_utc": _utc(0)},
        "phases": list(phases),
    }


def _telemetry(end: int) -> list[TelemetrySample]:
    return [
        TelemetrySample(
            at_ns=at,
            processes=1,
            rss_bytes=(200 << 20) + number * 4_096,
            cpu_ns=at // 2,
            package_energy_microjoules=number * 1_000_000,
            gpus=(
                GpuSample(
                    uuid="GPU-0",
                    power_milliwatts=100_000 + number % 7 * 1_000,
                    memory_used_bytes=2 << 30,
                    process_memory_bytes=1 << 30,
                    utilization_percent=50,
                    sm_clock_mhz=1_500,
                    throttle_reasons=0,
                ),
            ),
        )
        for number, at in enumerate(range(0, end, 80 * MS))
    ]


def _private(pem: bytes) -> Ed25519PrivateKey:
    with TemporaryDirectory() as directory:
        path = Path(directory, "key")
        path.write_bytes(pem)
        return signing.load_private(path)
