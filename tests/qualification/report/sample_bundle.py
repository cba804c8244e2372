"""A synthetic evidence directory for the report's tests and for looking at the page: deterministic, not a run.

Voices are sums of harmonics under a syllable rhythm, so that spectrograms look like something; times come from a seeded
generator. It is written through the bundle writer and sealed like a real one.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qualification import strictjson
from qualification.bench.raw import Packet, RequestOutcome, RequestRecord, ServerMetrics, TelemetrySample
from qualification.bundle import BundleWriter, Report
from qualification.digest import sha256_bytes, sha256_file
from qualification.gates.table import GATES
from qualification.identity import identity_document, judge, survey
from qualification.licences import LicenceRecord, LicenceRules, licences_document
from qualification.paths import data_file
from qualification.pins import parse_pins
from qualification.workload import Kind, Workload, WorkloadEntry, load_workload
from tests.qualification.safetensors_files import write_sound

RATE = 24_000
FRAME = 1_920
RUN_ID = "20260102T030405Z-sample"
ZERO = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SECOND = 1_000_000_000
Pcm = npt.NDArray[np.int16]


@dataclass(kw_only=True)
class Sample:
    """How large and how bad the sample is. `unnatural` entries run into the ceiling, `failing` ones break off."""

    seeds: int = 2
    frames: int = 30
    bench_rounds: int = 5
    unnatural: frozenset[str] = frozenset()
    failing: frozenset[str] = frozenset()
    now: int = field(default=2 * SECOND)
    phases: list[dict[str, Any]] = field(default_factory=list)


def build(root: Path, scratch: Path, sample: Sample | None = None, report: Report | None = None) -> Path:
    """Write and seal a sample bundle at `root`; `scratch` takes the model that it pretends to have qualified."""
    sample = sample or Sample()
    workload = load_workload()
    writer = BundleWriter.create(root)
    profiles = [_profile("EOS", 6, _ids(workload, Kind.COVERAGE, Kind.CODE_SWITCH), 1, sample.seeds)]
    bench = [entry.id for entry in workload.of_kind(Kind.BENCH)]
    profiles += [_profile(name, n, bench, sample.bench_rounds, 1) for name, n in (("B1", 1), ("B3", 3), ("B6", 6))]
    for name in ("policy.json", "workload.json"):
        writer.document(name, strictjson.load(data_file(name)))
    _identity(writer, scratch)
    _licences(writer)
    for profile in profiles:
        writer.records(profile["samples"], list(_records(writer, workload, profile, sample)))
    samples = _telemetry(sample.now)
    writer.telemetry(samples)
    writer.document("records/sampler-01.json", _sampler(samples))
    writer.document("environment.json", _environment())
    writer.document("phases.json", _phases(sample))
    writer.document("run.json", _run(profiles, sample))
    writer.seal(GATES, report=report)
    return root


def _ids(workload: Workload, *kinds: Kind) -> list[str]:
    return [entry.id for entry in workload.of_kind(*kinds)]


def _profile(name: str, concurrency: int, entries: list[str], rounds: int, repeats: int) -> dict[str, Any]:
    return {
        "name": name, "title": f"sample profile {name}", "samples": f"samples/{name.lower()}.jsonl",
        "load": "sustained",
        "concurrency": concurrency, "rate_per_second": None, "rounds": rounds, "entries": entries, "repeats": repeats,
        "stop": "count", "seeds": "rotate", "warmup_requests": 6, "minimum_seconds": 0,
    }  # fmt: skip


def _records(
    writer: BundleWriter, workload: Workload, profile: dict[str, Any], sample: Sample
) -> Iterator[RequestRecord]:
    for turn in range(profile["rounds"]):
        for phase, count in (("warmup", 6), ("measure", profile["repeats"] * len(profile["entries"]))):
            start, slots, records = sample.now, [sample.now] * profile["concurrency"], []
            for index in range(count):
                entry = workload.entry(profile["entries"][index % len(profile["entries"])])
                walk = turn * profile["repeats"] + index // len(profile["entries"])
                slot = slots.index(min(slots))
                record, pcm = _request(profile, phase, turn, index, entry, walk, slots[slot], sample)
                slots[slot] = record.end_ns + 2_000_000
                if record.audio is not None and pcm is not None:
                    writer.audio(record.audio, pcm.tobytes())
                records.append(record)
            sample.now = max(slots) + SECOND // 10
            sample.phases.append(_phase(phase, profile["name"], turn, len(records), start, sample.now))
            yield from records


def _request(
    profile: dict[str, Any], phase: str, turn: int, index: int, entry: WorkloadEntry, walk: int, t0: int, sample: Sample
) -> tuple[RequestRecord, Pcm | None]:
    name, concurrency = profile["name"], profile["concurrency"]
    random = np.random.default_rng(list(f"{name}{phase}{turn}{index}".encode()))
    seed = entry.seeds[walk % len(entry.seeds)]
    identity = str(uuid.uuid5(uuid.NAMESPACE_URL, f"sample:{name}:{phase}:{turn}:{index}"))
    broken = phase == "measure" and entry.id in sample.failing
    length = np.random.default_rng([seed, *entry.id.encode()]).uniform(0.8, 1.2)  # the same whenever it is asked again
    frames = int(sample.frames * length) + 2
    stored = phase == "measure" and not broken and name == "EOS"
    pcm = _voice(entry, seed, frames) if stored else _noise(entry, seed, frames)
    first = t0 + int((0.03 + 0.02 * concurrency) * SECOND * random.lognormal(0, 0.15))
    pace = int(SECOND * 0.08 * (0.10 + 0.055 * concurrency))  # nanoseconds a frame
    packets = tuple(_packets(first, frames, pace, random))
    if broken:
        packets = packets[:2]
    samples = sum(packet.samples for packet in packets)
    kept = pcm[:samples]
    record = RequestRecord(
        request_id=identity, phase=phase, profile=name, load="sustained", concurrency=concurrency, round=turn,
        index=index, workload_id=entry.id, language=entry.language, seed=seed,
        outcome=RequestOutcome.STREAM_ERROR if broken else RequestOutcome.OK, http_status=200,
        error_code="internal_error" if broken else None,
        error_detail="the sample breaks off here, <b>on purpose</b>" if broken else None,
        scheduled_ns=t0, t0_ns=t0, headers_ns=t0 + 4_000_000, end_ns=packets[-1].at_ns + 1_500_000, packets=packets,
        finish_reason=None if broken else ("length" if entry.id in sample.unnatural else "stop"), echoed_seed=seed,
        samples=samples, pcm_sha256=sha256_bytes(kept.tobytes()),
        audio=f"audio/{identity}.wav" if stored else None,
        server_metrics=None if broken else ServerMetrics(generated_codec_frames=frames, emitted_samples=samples),
    )  # fmt: skip
    return record, kept


def _packets(first: int, frames: int, pace: int, random: np.random.Generator) -> Iterator[Packet]:
    at, done, sequence = first, 0, 0
    while done < frames:
        count = 1 if sequence == 0 else min(4, frames - done)
        at += 0 if sequence == 0 else int(count * pace * random.lognormal(0, 0.2))
        yield Packet(
            at_ns=at, sequence=sequence, first_frame=done, first_sample=done * FRAME, frames=count,
            samples=count * FRAME, bytes=count * FRAME * 2, final=done + count == frames,
        )  # fmt: skip
        done, sequence = done + count, sequence + 1


def _noise(entry: WorkloadEntry, seed: int, frames: int) -> Pcm:
    """Cheap samples for what is only hashed."""
    random = np.random.default_rng([seed, *entry.id.encode()])
    return random.integers(-900, 900, frames * FRAME, dtype=np.int16)


def _voice(entry: WorkloadEntry, seed: int, frames: int) -> Pcm:
    """Harmonics of a gliding pitch, shaped by two formants and a syllable rhythm, with breath between."""
    random = np.random.default_rng([seed, *entry.id.encode()])
    time = (np.arange(frames * FRAME) / RATE).astype(np.float32)
    base = 110.0 if " male" in entry.voice_description or "man" in entry.voice_description.split() else 205.0
    steps = random.uniform(-1, 1, (4, frames // 2 + 2))  # a new target every 160 ms
    curve = [np.interp(time, np.arange(row.size) * 0.16, row) for row in steps]
    phase = np.cumsum(base * (1 + 0.12 * curve[0] + 0.02 * np.sin(2 * np.pi * 5 * time))) / RATE
    formants = (500 + 250 * curve[1], 1500 + 700 * curve[2], 2900 + 300 * curve[3])
    sound = np.zeros_like(time)
    for harmonic in range(1, int(3_600 / base)):
        gain = sum(np.exp(-(((harmonic * base - formant) / 220) ** 2)) / (k + 1) for k, formant in enumerate(formants))
        sound += (gain + 0.02) / harmonic**0.4 * np.sin(2 * np.pi * harmonic * phase)
    syllables = random.uniform(0.6, 1.2, frames * 2 + 2) * (np.arange(frames * 2 + 2) % 5 > 1)  # a point each 50 ms
    beat = np.clip(np.interp(time, np.arange(syllables.size) * 0.05, syllables), 0, 1)
    breath = random.normal(0, 0.03, time.size) * np.clip(0.4 - beat, 0, 1)
    shaped = 0.16 * sound * beat + breath
    return np.clip(shaped * 32_767, -32_000, 32_000).astype("<i2")


def _telemetry(end: int) -> list[TelemetrySample]:
    return [
        TelemetrySample(
            at_ns=at, processes=1, rss_bytes=700_000_000 + int(2e8 * (1 - np.exp(-at / 8e9))) + at % 7_000_000,
            pss_bytes=650_000_000 + at % 5_000_000 if number % 7 == 0 else None,
            cpu_ns=int(at * (1.5 + 0.3 * np.sin(at / 3e9))), machine_cpu_ns=int(at * 2.0), harness_cpu_ns=at // 20,
            package_energy_microjoules=None, gpus=(),
        )
        for number, at in enumerate(range(SECOND, end + SECOND // 5, 150_000_000))
    ]  # fmt: skip


def _sampler(samples: list[TelemetrySample]) -> dict[str, Any]:
    return {
        "schema": "urn:assay:schema:sampler:v1", "run_id": RUN_ID, "number": 1, "interval_ms": 100, "slow_interval_ms": 1000,
        "priority": 0, "samples": len(samples), "first_ns": samples[0].at_ns, "last_ns": samples[-1].at_ns, "ended": "stopped", "fault": None,
        "sensors": {
            "package_energy": {"zones": [], "absent": "the kernel shows no powercap directory"},
            "accelerators": {"uuids": [], "absent": "NVMLError_LibraryNotFound: NVML Shared Library Not Found"},
            "machine_cpu": True,
        },
    }  # fmt: skip


def _phase(
    kind: str, profile: str | None, turn: int | None, requests: int | None, start: int, end: int
) -> dict[str, Any]:
    return {
        "kind": kind, "name": f"{profile} {kind}", "profile": profile, "round": turn, "requests": requests,
        "start_ns": start, "end_ns": end, "start_utc": _utc(start), "end_utc": _utc(end),
    }  # fmt: skip


def _phases(sample: Sample) -> dict[str, Any]:
    setup = {**_phase("setup", None, None, None, 0, 2 * SECOND), "name": "start the subject"}
    clock = {"source": "monotonic", "zero_utc": _utc(0)}
    return {
        "schema": "urn:assay:schema:phases:v2", "run_id": RUN_ID, "clock": clock, "phases": [setup, *sample.phases],
    }  # fmt: skip


def _utc(nanoseconds: int) -> str:
    return (ZERO + timedelta(microseconds=nanoseconds // 1000)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _run(profiles: list[dict[str, Any]], sample: Sample) -> dict[str, Any]:
    return {
        "schema": "urn:assay:schema:run:v2", "run_id": RUN_ID, "started_utc": _utc(0), "gates_selected": None, "sessions": 1,
        "ended_utc": _utc(sample.now + SECOND),
        "harness": {"name": "tts-assay", "version": "0.0.0"}, "source": {"commit": "0" * 40, "dirty": False},
        "subject": {
            "kind": "process", "model": "sample/voice-design", "precision": "fp32", "device": "cpu",
            "endpoint": "http://127.0.0.1:1", "command": ["python", "-m", "engine", "serve"], "image": None,
            "max_concurrent_requests": 6,
        },
        "tier": "reference", "profiles": profiles,
        "parameters": {
            "timeout_seconds": 120, "max_duration_seconds": 20.48,
            "store_audio": "measured", "telemetry_interval_ms": 100, "sampling": None,
        },
    }  # fmt: skip


def _identity(writer: BundleWriter, scratch: Path) -> None:
    weights = write_sound(scratch / "model" / "model.safetensors")
    card = scratch / "model" / "README.md"
    card.write_text("---\nlicense: apache-2.0\n---\n")
    pins = [
        {
            "path": path.name, "role": role, "bytes": path.stat().st_size, "basis": "measured", "inventory": None,
            "digest": {"algorithm": "sha256", "value": sha256_file(path)},
        }
        for path, role in ((card, "card"), (weights, "weights"))
    ]  # fmt: skip
    model = {
        "id": "sample/voice-design", "revision": None, "tier": "reference", "licence": "Apache-2.0",
        "source": "made by the sample", "files": pins, "unpinned": [],
    }  # fmt: skip
    document = {**strictjson.load(data_file("pins.json"))}
    document["models"] = [*(item for item in document["models"] if item["tier"] == "release"), model]
    writer.document("pins.json", document)
    known = parse_pins(document)
    judgement = judge(survey(scratch / "model", known), known)
    writer.document("identity.json", identity_document(RUN_ID, judgement))


def _licences(writer: BundleWriter) -> None:
    rules = LicenceRules(
        allowed=frozenset({"MIT"}), exceptions=frozenset(), waivers=(), today=date(2026, 1, 2)
    )  # fmt: skip
    rows = [
        ("numpy", "2.4.6", "BSD-3-Clause"),
        ("starlette", "1.0", "BSD-3-Clause"),
        ("torch", "2.13.0", "BSD-3-Clause"),
    ]
    records = [
        LicenceRecord(
            name=name, version=version, scope="required", expression=expression, source="license-expression",
            evidence=expression, decision="allowed", detail="the policy allows it",
        )
        for name, version, expression in rows
    ]  # fmt: skip
    weights = LicenceRecord(
        name="model.safetensors", version=None, scope="model", expression="Apache-2.0", source="pins",
        evidence="pins of sample/voice-design", decision="allowed", detail="the policy allows it",
    )  # fmt: skip
    writer.document("licences.json", licences_document(RUN_ID, records, [weights], rules))


def _environment() -> dict[str, Any]:
    return {
        "schema": "urn:assay:schema:environment:v1", "run_id": RUN_ID, "captured_utc": "2026-01-02T03:04:05Z",
        "machine": {
            "architecture": "x86_64", "system": "Linux", "kernel": "6.12", "cpu_model": "Example CPU @ 2 GHz",
            "cpus": 2,
            "cpus_usable": 2, "cpu_quota": None, "cpu_governor": None, "memory_bytes": 25_000_000_000,
            "memory_available_bytes": 21_000_000_000, "memory_limit_bytes": None, "load_average": [0.4, 0.3, 0.2],
        },
        "python": {"implementation": "CPython", "version": "3.11.7"},
        "packages": [{"name": "torch", "version": "2.13.0"}, {"name": "triton", "version": None}],
        "accelerators": {
            "probe": "nvml", "absent": "NVMLError_LibraryNotFound: NVML Shared Library Not Found", "driver": None,
            "cuda": None, "devices": [],
        },
        "container": {"hints": [], "seccomp_mode": 0, "no_new_privileges": False},
        "source": {"commit": "0" * 40, "dirty": False},
    }  # fmt: skip
