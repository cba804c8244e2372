"""The good bundle at the size of a release: 12 rounds of load, 2,600 requests, each measured one with its audio; a report.

It is made by the builder of the good bundle on a longer plan, with longer speech in more packets and with telemetry
five times as close, so that the work of a verifier is that of a long run. Its times stay simulated.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import partialmethod
from pathlib import Path
from typing import Any, Final

import pytest

from qualification.bench.raw import BYTES_PER_SAMPLE, SAMPLES_PER_FRAME, Packet, RequestRecord, TelemetrySample
from qualification.bundle import BundleWriter
from qualification.report.html import render
from qualification.tamper import good, good_documents, good_requests

REQUESTS: Final = 2_600
ROUNDS: Final = 12
FRAMES: Final = 25  # 2 s of speech
_REPEATS: Final = 107
_CLOSER: Final = 5
_LOADED: Final = ("B1", "B3", "B6")


def build(root: Path, monkeypatch: pytest.MonkeyPatch) -> good.Good:
    """Write, seal and sign the bundle at `root`, which must not exist."""
    monkeypatch.setattr(good_requests, "FRAMES", FRAMES)
    monkeypatch.setattr(good_requests, "seeds_of", _seeds_in_turn)
    monkeypatch.setattr(good, "make_run", _long_run)
    monkeypatch.setattr(good, "make_record", _record)
    monkeypatch.setattr(good, "make_telemetry", _close_telemetry)
    monkeypatch.setattr(BundleWriter, "seal", partialmethod(BundleWriter.seal, report=render))
    return good.build(root)


def _seeds_in_turn(workload_id: str) -> tuple[int, ...]:
    """The entry's seeds over and over: a long run goes through them many times."""
    return good_documents.seeds_of(workload_id) * ROUNDS * _REPEATS


def _long_run() -> dict[str, Any]:
    run = good_documents.make_run()
    for profile in run["profiles"]:
        if profile["name"] in _LOADED:
            profile |= {"rounds": ROUNDS // len(_LOADED), "repeats": _REPEATS}
    return run


def _record(profile: Mapping[str, Any], kind: str, turn: int, index: int, now: int) -> RequestRecord:
    """A record of the good bundle whose audio came in one packet a frame."""
    record = good_requests.make_record(profile, kind, turn, index, now)
    first, last = (packet.at_ns for packet in record.packets)
    packets = tuple(_packet(number, first + (last - first) * number // FRAMES) for number in range(FRAMES))
    assert record.server_metrics is not None
    metrics = dataclasses.replace(record.server_metrics, emitted_packets=FRAMES)
    return dataclasses.replace(record, packets=packets, server_metrics=metrics)


def _packet(number: int, at_ns: int) -> Packet:
    return Packet(
        at_ns=at_ns,
        sequence=number,
        first_frame=number,
        first_sample=number * SAMPLES_PER_FRAME,
        frames=1,
        samples=SAMPLES_PER_FRAME,
        bytes=SAMPLES_PER_FRAME * BYTES_PER_SAMPLE,
        final=number == FRAMES - 1,
    )


def _close_telemetry(watched: int, end: int) -> list[TelemetrySample]:
    samples = good_requests.make_telemetry(watched, end)
    step = (samples[1].at_ns - samples[0].at_ns) // _CLOSER
    return [
        dataclasses.replace(sample, at_ns=sample.at_ns + part * step) for sample in samples for part in range(_CLOSER)
    ]
