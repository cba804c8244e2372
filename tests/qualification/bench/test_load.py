"""How requests meet the server: in flight, together, or by schedule; and what happens when it dies."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from itertools import pairwise

import pytest

from qualification.bench.client import SpeechCall
from qualification.bench.clock import Clock
from qualification.bench.connection import Deadlines
from qualification.bench.load import Driver, Job, Load, Spoken
from qualification.bench.raw import RequestRecord
from qualification.bench.target import parse_target
from qualification.errors import SubjectError
from tests.qualification.fake_server import Behaviour, FakeServer

LIMITS = Deadlines(connect=1.0, headers=2.0, silence=2.0, total=5.0)


def jobs(count: int) -> Iterator[Job]:
    for index in range(count):
        call = SpeechCall(
            request_id=str(uuid.uuid4()),
            text=f"sentence number {index} for the load",
            voice_description="calm",
            language="auto",
            seed=index,
            max_duration_seconds=20.0,
            sampling={},
        )
        yield Job(call=call, phase="measure", profile="B1", round=0, index=index, workload_id="bench-x", language="en")


def drive(behaviour: Behaviour, load: Load, count: int, url: str | None = None) -> list[RequestRecord]:
    """The records in order of the plan."""
    spoken: list[Spoken] = []

    async def main() -> None:
        async with FakeServer(behaviour) as server:
            driver = Driver(
                parse_target(url or server.url), Clock(), LIMITS, finished=spoken.append, alive=lambda: True
            )
            assert await driver.run(load, jobs(count)) == count

    asyncio.run(main())
    return sorted((item.record for item in spoken), key=lambda record: record.index)


def most_in_flight(records: list[RequestRecord]) -> int:
    edges = sorted([(r.t0_ns, 1) for r in records] + [(r.end_ns, -1) for r in records])
    flying = most = 0
    for _, step in edges:
        flying += step
        most = max(most, flying)
    return most


@pytest.mark.parametrize("concurrency", [1, 3])
def test_sustained_keeps_that_many_in_flight(concurrency: int) -> None:
    behaviour = Behaviour(frame_seconds=0.01)
    records = drive(behaviour, Load(kind="sustained", concurrency=concurrency), 7)
    assert [record.index for record in records] == list(range(7))
    assert all(record.ok for record in records)
    assert most_in_flight(records) == concurrency == behaviour.peak_active


def test_a_wave_starts_together_and_the_next_one_waits_for_all() -> None:
    records = drive(Behaviour(frame_seconds=0.01), Load(kind="wave", concurrency=3), 7)
    waves = [records[0:3], records[3:6], records[6:7]]
    for wave in waves:
        assert max(r.t0_ns for r in wave) - min(r.t0_ns for r in wave) < 20e6
    for before, after in pairwise(waves):
        assert min(r.t0_ns for r in after) >= max(r.end_ns for r in before)


def test_open_load_sends_on_schedule_whatever_the_server_does() -> None:
    load = Load(kind="poisson", concurrency=1, rate_per_second=40.0, arrival_seed=3)
    records = drive(Behaviour(frame_seconds=0.05), load, 6)
    assert most_in_flight(records) > 1
    for record in records:
        assert -1e6 < record.t0_ns - record.scheduled_ns < 100e6
        assert record.wall_ns == record.end_ns - record.scheduled_ns
    again = drive(Behaviour(), load, 6)
    gaps = [[b.scheduled_ns - a.scheduled_ns for a, b in pairwise(run)] for run in (records, again)]
    assert gaps[0] == gaps[1]


def test_an_open_load_needs_a_rate() -> None:
    with pytest.raises(ValueError, match="rate_per_second"):
        drive(Behaviour(), Load(kind="poisson", concurrency=1), 1)


def test_refusals_of_an_overloaded_server_are_records() -> None:
    records = drive(Behaviour(slots=1, frame_seconds=0.05), Load(kind="wave", concurrency=3), 3)
    assert sorted(record.outcome.value for record in records) == ["ok", "refused", "refused"]
    assert {record.error_code for record in records} == {None, "capacity_exhausted"}


def test_one_broken_stream_does_not_stop_the_load() -> None:
    records = drive(Behaviour(fault="dies_mid_stream", only=(2,)), Load(kind="sustained", concurrency=2), 6)
    assert [record.ok for record in records].count(False) == 1


@pytest.mark.parametrize("kind", ["sustained", "wave"])
def test_a_dead_process_ends_the_load_and_what_was_in_flight_is_recorded(kind: str) -> None:
    spoken: list[Spoken] = []

    async def main() -> None:
        async with FakeServer(Behaviour(fault="dies_mid_stream", only=(3, 4, 5, 6, 7, 8))) as server:
            driver = Driver(
                parse_target(server.url), Clock(), LIMITS, finished=spoken.append, alive=lambda: len(spoken) < 4
            )
            await driver.run(Load(kind=kind, concurrency=3), jobs(50))  # type: ignore[arg-type]

    with pytest.raises(SubjectError, match="process ended"):
        asyncio.run(main())
    assert 4 <= len(spoken) <= 8
    assert len({item.record.index for item in spoken}) == len(spoken)


def test_an_endpoint_that_is_gone_is_not_measured_to_the_end() -> None:
    spoken: list[Spoken] = []

    async def main() -> None:
        async with FakeServer() as server:
            url = server.url
        driver = Driver(parse_target(url), Clock(), LIMITS, finished=spoken.append, alive=lambda: True)
        await driver.run(Load(kind="sustained", concurrency=1), jobs(1_000))

    with pytest.raises(SubjectError, match="stopped answering"):
        asyncio.run(main())
    assert len(spoken) == 4
