"""The raw records, audio and telemetry of the good bundle: simulated on a schedule that a real run could have had."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import numpy as np

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
from qualification.digest import sha256_bytes
from qualification.tamper.good_documents import MS, language_of, seeds_of

FRAMES: Final = 4
GAP: Final = 30 * MS


def make_record(profile: Mapping[str, Any], kind: str, turn: int, index: int, now: int) -> RequestRecord:
    """One request on the schedule: `concurrency` workers, each busy 100 ms a request and idle 5 ms between."""
    entries, name = profile["entries"], profile["name"]
    workload_id = entries[index % len(entries)]
    walk = index // len(entries) + turn * profile["repeats"]
    seed = seeds_of(workload_id)[walk if profile["seeds"] == "rotate" else 0]
    pcm = pcm_of(workload_id, seed)
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
        language=language_of(workload_id),
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


def pcm_of(workload_id: str, seed: int) -> bytes:
    """A triangle wave in syllables, whose period and loudness hang on text and seed; integers only."""
    draw = int(sha256_bytes(f"{workload_id}/{seed}".encode())[:6], 16)
    period, loudness = 60 + draw % 100, 12_000 + draw // 100 % 4_000
    steps = np.arange(FRAMES * SAMPLES_PER_FRAME, dtype=np.int64)
    wave = np.abs(steps % (2 * period) - period) * loudness // period - loudness // 2
    syllable = np.where(steps // 960 % 2 == 0, 8, 1)
    return (wave * syllable // 8).astype("<i2").tobytes()


def make_telemetry(watched: int, end: int) -> list[TelemetrySample]:
    """Samples every 80 ms; the subject is there from `watched` on. The accelerator draws about 100 W throughout."""
    return [
        TelemetrySample(
            at_ns=at,
            processes=int(at >= watched),
            rss_bytes=(200 << 20) + number * 4_096 if at >= watched else None,
            pss_bytes=(150 << 20) + number * 4_096 if at >= watched and number % 12 == 0 else None,
            cpu_ns=at // 2 if at >= watched else None,
            machine_cpu_ns=(at * 3) // 4 + MS,
            harness_cpu_ns=at // 10,
            package_energy_microjoules=at // 80,
            gpus=(
                GpuSample(
                    uuid="GPU-0",
                    power_milliwatts=100_000 + number % 7 * 1_000,
                    energy_millijoules=at // 10_000,
                    memory_used_bytes=2 << 30,
                    process_memory_bytes=1 << 30 if at >= watched else None,
                    processes=int(at >= watched),
                    subject_processes=int(at >= watched),
                    utilization_percent=50,
                    sm_clock_mhz=1_500,
                    memory_clock_mhz=2_600,
                    temperature_celsius=40 + number % 5,
                    throttle_reasons=0 if number % 9 else 4,
                ),
            ),
        )
        for number, at in enumerate(range(0, end, 80 * MS))
    ]
