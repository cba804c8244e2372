"""Micro-benchmarks of the two hot calls on a processor: one frame of all rows, one codec packet of some rows.

They show what a change costs, on the same machine before and after; they say nothing about a real model or an
accelerator.
"""

# pytest-benchmark publishes no types
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from engine.checkpoint import LoadedModel, load_model
from engine.contract import Sampling, StageSampling
from engine.rows import RowLimits
from engine.runner import Runner
from tests.engine.tiny_checkpoint import TinyShape, write_tiny_checkpoint

pytestmark = pytest.mark.micro
FRAMES, POSITIONS, ROUNDS, WARM_UP = 400, 600, 40, 5
STAGES = {
    "greedy": StageSampling(strategy="greedy"),
    "top-k": StageSampling(),
    "top-p": StageSampling(top_k=0, top_p=0.9),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    shape = TinyShape(hidden=128, predictor_hidden=64, layers=4, ends=False)
    directory = write_tiny_checkpoint(tmp_path_factory.mktemp("bench"), shape)
    return load_model(directory, device=torch.device("cpu"), dtype=torch.float32)


def busy(model: LoadedModel, rows: int, stage: StageSampling) -> Runner:
    """A runner whose first rows are all taken."""
    runner = Runner(model, RowLimits(rows=rows, positions=POSITIONS, frames=FRAMES))
    plan = model.prompts.plan(text="A sentence of ordinary length to begin with.", instruction="Calm and slow.")
    for row in range(rows):
        runner.prefill(row, plan, seed=row, sampling=Sampling(talker=stage, predictor=stage))
    return runner


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("rows", [1, 3, 6])
def test_frame_step(benchmark: BenchmarkFixture, model: LoadedModel, rows: int, stage: str) -> None:
    runner = busy(model, rows, STAGES[stage])
    benchmark.extra_info["frames"] = rows
    following = benchmark.pedantic(runner.step, args=([True] * rows,), rounds=ROUNDS, warmup_rounds=WARM_UP)
    assert len(following) == rows


@pytest.mark.parametrize("frames", [1, 2, 4])
@pytest.mark.parametrize("rows", [1, 3, 6])
def test_codec_step(benchmark: BenchmarkFixture, model: LoadedModel, rows: int, frames: int) -> None:
    runner = busy(model, rows, STAGES["greedy"])
    selected = list(range(rows))
    benchmark.extra_info["frames"] = rows * frames
    packets = benchmark.pedantic(
        runner.decode, args=(selected, [0] * rows, frames), rounds=ROUNDS, warmup_rounds=WARM_UP
    )
    assert [len(packet) for packet in packets] == [2 * 1_920 * frames] * rows


def test_prefill(benchmark: BenchmarkFixture, model: LoadedModel) -> None:
    runner = busy(model, 1, STAGES["top-k"])
    plan = model.prompts.plan(text="A sentence of ordinary length to begin with.", instruction="Calm and slow.")
    benchmark.pedantic(
        runner.prefill, args=(0, plan), kwargs={"seed": 1, "sampling": Sampling()}, rounds=ROUNDS, warmup_rounds=WARM_UP
    )
    assert 0 <= int(runner.codes(0, 1)[0, 0]) < model.talker.config.vocab
