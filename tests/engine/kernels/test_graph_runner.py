"""The graph runner's own logic against the plain runner, on a CPU: streams and events are stand-ins, a graph is its
body run again.

Stands in only for what an accelerator would do; buckets, padding, static inputs, spare rows and the order of events are
the real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch

from engine import graph_runner
from engine.contract import Sampling
from engine.errors import DeviceError
from engine.frame_ops import FrameOps
from engine.frame_weights import FrameWeights
from engine.graph_plan import GraphPlan
from engine.graph_runner import GraphRunner
from engine.graphs import Replay
from engine.plain_ops import PlainOps
from engine.rows import RowLimits
from engine.runner import Runner
from tests.engine.kernels.bench import load_tiny

LIMITS = RowLimits(rows=3, positions=160, frames=24)
PLAN = GraphPlan(rows=(1, 2, 4), prompts=(64, 128), codec_rows=(1, 2, 4), codec_frames=(1, 2, 4))
TEXTS = ("Hello there.", "A longer sentence, indeed.", "x")


class FakeEvent:
    recorded = False

    def record(self) -> None:
        self.recorded = True

    def synchronize(self) -> None:
        assert self.recorded, "waited for an event that nobody recorded"

    def query(self) -> bool:
        return self.recorded


class FakeStream:
    def __init__(self, *_arguments: object, **_options: object) -> None: ...

    def synchronize(self) -> None: ...

    def wait_event(self, event: FakeEvent) -> None:
        assert event.recorded, "a packet would start before the frame that completed it"


class FakeDriver:
    def __init__(self, _stream: object) -> None: ...

    def capture(self, body: Callable[[], None]) -> Replay:
        body()
        return body


@pytest.fixture
def runners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[GraphRunner, Runner]]:
    monkeypatch.setattr(torch.cuda, "Stream", FakeStream)
    monkeypatch.setattr(torch.cuda, "Event", FakeEvent)
    monkeypatch.setattr(torch.cuda, "stream", lambda _stream: nullcontext())
    monkeypatch.setattr(torch.cuda, "synchronize", lambda _device: None)
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda _tensor, _stream: None)
    monkeypatch.setattr(graph_runner, "CudaGraphDriver", FakeDriver)
    monkeypatch.setattr(graph_runner, "fuse_snakes", lambda _codec: None)

    def plain(_runner: GraphRunner, _weights: FrameWeights) -> FrameOps:
        return PlainOps()

    monkeypatch.setattr(GraphRunner, "_make_ops", plain)
    allowed = torch.backends.cudnn.allow_tf32
    yield GraphRunner(load_tiny(tmp_path / "a"), LIMITS, plan=PLAN), Runner(load_tiny(tmp_path / "b"), LIMITS)
    torch.backends.cudnn.allow_tf32 = allowed


def begin(runner: Runner, texts: tuple[str, ...] = TEXTS, *, seed: int = 0) -> None:
    for row, text in enumerate(texts):
        runner.prefill(row, runner.prompts.plan(text=text, instruction="Calm."), seed=seed + row, sampling=Sampling())


def test_frames_packets_and_moves_are_those_of_the_plain_runner(runners: tuple[GraphRunner, Runner]) -> None:
    graphs, plain = runners
    for runner in runners:
        begin(runner)
    assert torch.equal(graphs.rows.code0, plain.rows.code0)
    for turn in range(7):
        advance = [True, turn % 2 == 0, True]
        assert graphs.step(advance) == plain.step(advance)
    for rows, starts, frames in (((0, 1, 2), (0, 0, 0), 1), ((0, 2), (1, 1), 2), ((0, 2), (3, 3), 3)):
        for ours, theirs in zip(
            graphs.start_decode(rows, starts, frames).take(), plain.decode(rows, starts, frames), strict=True
        ):
            assert len(ours) == len(theirs)
            difference = np.frombuffer(ours, "<i2").astype(int) - np.frombuffer(theirs, "<i2")
            assert abs(difference).max() <= 1
    for runner in runners:
        runner.move(2, 0)
    assert graphs.step([True, True]) == plain.step([True, True])
    assert torch.equal(graphs.codes(0, 6), plain.codes(0, 6))


def test_everything_is_captured_first_and_only_replayed_later(runners: tuple[GraphRunner, Runner]) -> None:
    graphs, _ = runners
    before = {name: report.captured for name, report in graphs.graph_reports.items()}
    assert set(before["frames"]) == {"prefill 64", "prefill 128", "frame 1", "frame 2", "frame 4"}
    assert len(before["first packet"]) == 3
    assert len(before["packet"]) == 9
    assert graphs.graph_replays == 0
    begin(graphs)
    graphs.step([True, True, True])
    graphs.start_decode((0, 1, 2), (0, 0, 0), 1).take()
    assert graphs.graph_replays == 3 + 1 + 1
    assert graphs.graph_reports["frames"].replays["frame 4"] == 1
    assert graphs.graph_reports["first packet"].replays["first packet 4x1"] == 1
    assert {name: report.captured for name, report in graphs.graph_reports.items()} == before


def test_a_prompt_without_a_bucket_is_refused(runners: tuple[GraphRunner, Runner]) -> None:
    graphs, _ = runners
    with pytest.raises(DeviceError, match=r"prompt length \d+ fits none"):
        begin(graphs, ("y" * 300,))
    assert graphs.graph_replays == 0
