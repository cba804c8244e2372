"""Rounds alternate, both sides speak the same, and failures are kept as rows."""

from __future__ import annotations

from qualification.bench.clock import Clock
from qualification.bench.target import Target
from qualification.container.parity import ParityPlan, measure_parity
from qualification.container.registry import free_port
from qualification.workload import Kind, load_workload
from tests.qualification.fake_server import Behaviour, running

RUN = "20260101-000000-test"
PLAN = ParityPlan(rounds=2, requests=2, warmup=1)


def test_two_sides_by_turns() -> None:
    items = load_workload().items(Kind.BENCH, seeds=1)
    with running(Behaviour()) as bare, running(Behaviour()) as inside:
        sides = [Target(host="127.0.0.1", port=server.port) for server in (bare, inside)]
        document = measure_parity(RUN, *sides, items, PLAN, Clock())
    rows = document["rows"]
    assert [(row["round"], row["side"]) for row in rows[::1] if row["index"] == 0] == [
        (-1, "bare"), (-1, "container"), (0, "bare"), (0, "container"), (1, "container"), (1, "bare"),
    ]  # fmt: skip
    assert {row["outcome"] for row in rows} == {"ok"}
    by_request = {(row["round"], row["index"]): set() for row in rows}  # type: dict[tuple[int, int], set[str]]
    for row in rows:
        by_request[row["round"], row["index"]].add(row["pcm_sha256"])
    assert all(len(hashes) == 1 for hashes in by_request.values())


def test_a_side_that_is_down_is_a_row() -> None:
    items = load_workload().items(Kind.BENCH, seeds=1)
    gone = Target(host="127.0.0.1", port=free_port())
    with running(Behaviour()) as bare:
        side = Target(host="127.0.0.1", port=bare.port)
        rows = measure_parity(RUN, side, gone, items, ParityPlan(rounds=1, requests=1, warmup=0), Clock())["rows"]
    assert [row["outcome"] for row in rows] == ["ok", "transport_error"]
