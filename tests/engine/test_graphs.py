"""Captured graphs by their rules: everything before service, nothing unnamed, nothing unchecked. The driver is a
fake.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from engine.errors import DeviceError, UsageError
from engine.graph_plan import GraphPlan
from engine.graphs import GraphSet, Replay, bucket_for, check_buckets, write_static
from engine.rows import RowLimits


class FakeDriver:
    """Runs the body at capture and at every replay; fails at the capture that it is told to."""

    def __init__(self, failure: Exception | None = None) -> None:
        self._failure = failure

    def capture(self, body: Callable[[], None]) -> Replay:
        if self._failure is not None:
            raise self._failure
        body()
        return body


def test_replays_are_counted_by_name() -> None:
    calls: list[str] = []
    graphs = GraphSet(FakeDriver())
    graphs.capture("one", lambda: calls.append("one"))
    graphs.capture("two", lambda: calls.append("two"))
    graphs.replay("two")
    graphs.replay("two")
    assert calls == ["one", "two", "two", "two"]
    assert graphs.replays == 2
    assert graphs.report.captured == ("one", "two")
    assert graphs.report.replays == {"one": 0, "two": 2}
    assert graphs.report.eager_fallbacks == 0


def test_a_graph_that_was_not_captured_is_refused_and_runs_nothing() -> None:
    graphs = GraphSet(FakeDriver())
    graphs.capture("frame 4", lambda: None)
    with pytest.raises(DeviceError, match="'frame 5' was not captured; captured are frame 4"):
        graphs.replay("frame 5")
    assert graphs.replays == 0


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (RuntimeError("operation not permitted"), "graph 'frame 2' cannot be captured: operation not permitted"),
        (torch.cuda.OutOfMemoryError("out of memory"), "no memory for graph 'frame 2' .*--max-concurrent-requests"),
    ],
)
def test_a_failed_capture_names_the_graph(failure: Exception, message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        GraphSet(FakeDriver(failure)).capture("frame 2", lambda: None)


@pytest.mark.parametrize(("count", "bucket"), [(1, 1), (2, 2), (3, 4), (4, 4)])
def test_the_smallest_bucket_that_holds_the_count(count: int, bucket: int) -> None:
    assert bucket_for("rows", count, (1, 2, 4)) == bucket


@pytest.mark.parametrize("count", [0, 5])
def test_a_count_without_a_bucket_is_refused(count: int) -> None:
    with pytest.raises(DeviceError, match="fits none"):
        bucket_for("rows", count, (1, 2, 4))


@pytest.mark.parametrize("buckets", [(), (0, 1), (2, 1), (1, 1), (1, 2)])
def test_bucket_lists_that_make_no_sense_are_refused(buckets: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="row buckets"):
        check_buckets("row", buckets, reach=3)


def test_buckets_beyond_the_need_are_not_captured() -> None:
    assert check_buckets("row", (1, 2, 4, 8), reach=3) == (1, 2, 4)
    plan = GraphPlan().within(RowLimits(rows=5, positions=300, frames=100), packet_frames=4)
    assert plan.rows == (1, 2, 3, 4, 6)
    assert plan.prompts == (32, 64, 96, 128, 192, 256)
    assert plan.codec_rows == (1, 2, 3, 4, 6)
    assert plan.codec_frames == (1, 2, 4)


def test_positions_below_every_prompt_bucket_are_refused() -> None:
    with pytest.raises(UsageError, match="no prompt bucket"):
        GraphPlan().within(RowLimits(rows=1, positions=20, frames=10), packet_frames=4)


@pytest.mark.parametrize("values", [torch.zeros(3, dtype=torch.int64), torch.zeros(4)])
def test_a_static_input_takes_its_own_shape_and_type_only(values: torch.Tensor) -> None:
    target = torch.zeros(4, dtype=torch.int64)
    with pytest.raises(DeviceError, match="static input 'codes'"):
        write_static(target, values, "codes")
    write_static(target, torch.arange(4), "codes")
    assert target.tolist() == [0, 1, 2, 3]
