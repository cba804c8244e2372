"""The documents of the good bundle that no measurement makes: plan, policy, pins, identity, licences, machine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from qualification import identity, schema
from qualification.digest import sha256_bytes
from qualification.pins import read_pins
from qualification.policy import load_policy

RUN_ID: Final = "good-20260101-000000"
COMMIT: Final = "0123456789abcdef0123456789abcdef01234567"
START: Final = datetime(2026, 1, 1, tzinfo=UTC)
MS: Final = 1_000_000
LANGUAGES: Final = ("en", "de", "tr")
_SENTENCES: Final = {
    "coverage-en": "The ferry leaves the old harbour at noon, and by evening the whole island smells of rain.",
    "coverage-de": "Am fruehen Morgen liegt dichter Nebel ueber dem See, und nur die Enten sind schon lange wach.",
    "coverage-tr": "Sabah erkenden deniz sakin olur, bir iki martı ağır ağır döner ve kayıklar uyur durur orada.",
    "bench-one-en": "A short sentence for the load profiles, with a comma in the middle and a full stop at its end.",
    "bench-two-en": "Another short sentence for the load profiles, which says nothing that anybody has to remember.",
}
_WIRE: Final = {"en": "english", "de": "german", "tr": "auto"}


def utc(ns: int) -> str:
    return (START + timedelta(microseconds=ns // 1_000)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seeds_of(workload_id: str) -> tuple[int, ...]:
    first = 100 * (1 + sorted(_SENTENCES).index(workload_id))
    return tuple(range(first, first + 8))


def language_of(workload_id: str) -> str:
    return workload_id.rsplit("-", 1)[1]


def make_workload() -> dict[str, Any]:
    return {
        "schema": schema.urn("workload"),
        "version": "1.0.0",
        "entries": [
            {
                "id": name,
                "kind": "coverage" if name.startswith("coverage") else "bench",
                "language": language_of(name),
                "language_field": _WIRE[language_of(name)],
                "claimed_by_checkpoint": language_of(name) != "tr",
                "text": text,
                "voice_description": "A calm female voice with a medium pitch, speaking at a medium pace.",
                "seeds": list(seeds_of(name)),
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


def make_run() -> dict[str, Any]:
    bench = ("bench-one-en", "bench-two-en")
    return {
        "schema": schema.urn("run"),
        "run_id": RUN_ID,
        "started_utc": utc(0),
        "ended_utc": utc(0),
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
            "sampling": None,
        },
        "gates_selected": None,
        "sessions": 1,
    }


def make_session(run: Mapping[str, Any], ready_ns: int) -> dict[str, Any]:
    """The record of the one session of the good bundle."""
    return {
        "schema": schema.urn("session"),
        "run_id": RUN_ID,
        "number": 1,
        "reason": "first",
        "started_utc": utc(0),
        "started_ns": 0,
        "ready_ns": ready_ns,
        "clock": "continued",
        "subject": run["subject"],
        "max_duration_seconds": 20.48,
        "load_average": [0.1, 0.1, 0.1],
        "set_aside": [],
        "leftovers": [],
    }


def make_policy() -> dict[str, Any]:
    """The packaged policy with limits that so small a run can meet."""
    document: dict[str, Any] = json.loads(json.dumps(load_policy().document))
    rules = document["tiers"]["reference"]
    rules["counts"] = {
        "successes_per_profile": 2,
        "seconds_per_profile": 0,
        "warmup_requests": 0,
        "warmup_per_slot": 0,
    }
    rules["limits"]["eos"] = {"languages": list(LANGUAGES), "failure_rate_max": 0.5, "claimed_rate_max": 0.005}
    rules["limits"]["audio"]["seconds_min"] = 0.1
    for limits in rules["limits"]["bench"].values():
        limits["failure_rate_max"] = 0.5
    return document


def make_identity() -> tuple[dict[str, Any], dict[str, Any]]:
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


def make_licences() -> dict[str, Any]:
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


def make_environment() -> dict[str, Any]:
    return {
        "schema": schema.urn("environment"),
        "run_id": RUN_ID,
        "captured_utc": utc(0),
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


def make_sampler(samples: int, last_ns: int) -> dict[str, Any]:
    return {
        "schema": schema.urn("sampler"),
        "run_id": RUN_ID,
        "number": 1,
        "interval_ms": 80,
        "slow_interval_ms": 1000,
        "priority": -10,
        "sensors": {
            "package_energy": {"zones": ["intel-rapl:0"], "absent": None},
            "accelerators": {"uuids": ["GPU-0"], "absent": None},
            "machine_cpu": True,
        },
        "samples": samples,
        "first_ns": 0,
        "last_ns": last_ns,
        "ended": "stopped",
        "fault": None,
    }


def make_phases(phases: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "schema": schema.urn("phases"),
        "run_id": RUN_ID,
        "clock": {"source": "monotonic", "zero_utc": utc(0)},
        "phases": list(phases),
    }
