"""Every fused operation of a frame against its plain twin, on rows in the middle of their utterances."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.checkpoint import LoadedModel
from engine.frame import FrameProgram
from engine.frame_ops import FrameOps, Residual
from engine.frame_weights import Matrix
from engine.kernels.linear import Tile
from engine.kernels.ops import FusedOps, reading_order
from engine.plain_ops import PlainOps
from tests.engine.kernels.bench import SAMPLINGS, Bench, in_the_middle, load_tiny, make_bench, snapshot

LENGTHS = (1, 37, 150)
SPAN = 160


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return load_tiny(tmp_path_factory.mktemp("kernels"))


@pytest.fixture
def bench(model: LoadedModel) -> Bench:
    return make_bench(model)


@pytest.fixture(autouse=True)
def large_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few programs: the interpreter runs them one by one."""
    monkeypatch.setattr(
        "engine.kernels.ops.tile_for", lambda count, matrix, *, gated: Tile(columns=128, depth=64, stages=2)
    )


def fused(bench: Bench) -> FusedOps:
    return FusedOps(bench.weights, bench.rows.limits.rows, torch.device("cpu"))


def program(bench: Bench, ops: FrameOps) -> FrameProgram:
    hidden = bench.model.talker.config.transformer.hidden
    pad_row = torch.randn(1, hidden, generator=torch.Generator().manual_seed(9))
    return FrameProgram(
        weights=bench.weights, rows=bench.rows, ops=ops, rotary=bench.rotary, predictor_rotary=bench.predictor_rotary,
        pad_row=pad_row, eos=bench.model.talker.config.codec_ids.eos,
    )  # fmt: skip


@pytest.mark.parametrize("lengths", [LENGTHS, (0, 33, 64), (159, 2, 96)])
def test_attention_over_the_past(bench: Bench, lengths: tuple[int, ...]) -> None:
    stack, config = bench.weights.talker, bench.weights.talker.config
    outcomes = []
    for ops in (PlainOps(), fused(bench)):
        in_the_middle(bench, lengths, seed=3)
        width = (config.heads + 2 * config.kv_heads) * config.head_dim
        qkv = torch.randn(3, width, generator=torch.Generator().manual_seed(1))
        past = ops.past(bench.rows, 3, bench.rotary, span=SPAN)
        mixed = ops.attend_past(qkv, stack, 1, bench.rows.cache, past)
        outcomes.append((mixed, bench.rows.cache.data.clone()))
    for plain, kernel in zip(*outcomes, strict=True):
        torch.testing.assert_close(kernel, plain, rtol=1e-5, atol=1e-5)


def test_attention_of_repeated_steps_leaves_the_tickets_ready(bench: Bench) -> None:
    stack, ops = bench.weights.talker, fused(bench)
    in_the_middle(bench, LENGTHS, seed=3)
    qkv = torch.randn(3, stack.layers[0].qkv.weight.shape[0])
    past = ops.past(bench.rows, 3, bench.rotary, span=SPAN)
    first = ops.attend_past(qkv, stack, 0, bench.rows.cache, past)
    assert torch.equal(first, ops.attend_past(qkv, stack, 0, bench.rows.cache, past))


@pytest.mark.parametrize(("start", "width"), [(0, 2), (2, 1), (15, 1)])
def test_attention_within_a_frame(bench: Bench, start: int, width: int) -> None:
    stack = bench.weights.predictor
    outcomes = []
    for ops in (PlainOps(), fused(bench)):
        in_the_middle(bench, LENGTHS, seed=4)
        bench.rows.predictor_cache.data[..., :start, :].normal_(generator=torch.Generator().manual_seed(2))
        qkv = torch.randn(width * 3, stack.layers[0].qkv.weight.shape[0], generator=torch.Generator().manual_seed(5))
        cache = bench.rows.predictor_cache
        mixed = ops.attend_frame(qkv, stack, 1, cache, bench.predictor_rotary, start=start, width=width)
        outcomes.append((mixed, cache.data[1, :, :, :, : start + width].clone()))
    for plain, kernel in zip(*outcomes, strict=True):
        torch.testing.assert_close(kernel, plain, rtol=1e-5, atol=1e-5)


class ReadingOps(PlainOps):
    """Notes which matrices a frame reads, in its order."""

    def __init__(self) -> None:
        self.read: list[Matrix] = []

    def project(self, x: Residual, matrix: Matrix, eps: float) -> torch.Tensor:
        self.read.append(matrix)
        return super().project(x, matrix, eps)

    def logits(self, x: Residual, matrix: Matrix, eps: float) -> torch.Tensor:
        self.read.append(matrix)
        return super().logits(x, matrix, eps)

    def gated(self, x: Residual, matrix: Matrix, eps: float) -> torch.Tensor:
        self.read.append(matrix)
        return super().gated(x, matrix, eps)

    def extend(self, x: Residual, y: torch.Tensor, matrix: Matrix, *, gain: torch.Tensor, eps: float) -> Residual:
        self.read.append(matrix)
        return super().extend(x, y, matrix, gain=gain, eps=eps)


def test_weights_are_asked_for_in_the_order_in_which_a_frame_reads_them(bench: Bench) -> None:
    ops = ReadingOps()
    in_the_middle(bench, LENGTHS, seed=0, sampling=SAMPLINGS)
    program(bench, ops)(3, span=SPAN)
    ahead = reading_order(bench.weights)
    assert [id(matrix) for matrix in ops.read] == [id(matrix) for matrix in ahead]


@pytest.mark.slow
def test_a_whole_frame_equals_the_plain_one(bench: Bench) -> None:
    outcomes = []
    for ops in (PlainOps(), fused(bench)):
        in_the_middle(bench, LENGTHS, seed=0, sampling=SAMPLINGS)
        bench.rows.advance[1] = False
        following = program(bench, ops)(3, span=SPAN)
        outcomes.append({"following": following, **snapshot(bench.rows)})
    plain, kernel = outcomes
    for name, value in plain.items():
        assert torch.allclose(kernel[name].float(), value.float(), rtol=1e-4, atol=1e-4), name


@pytest.mark.slow
def test_a_complete_row_in_the_batch_stays_within_its_storage(bench: Bench) -> None:
    limits = bench.rows.limits
    for ops in (PlainOps(), fused(bench)):
        in_the_middle(bench, LENGTHS, seed=1)
        bench.rows.position[1], bench.rows.frame[1], bench.rows.advance[1] = limits.positions, limits.frames, False
        before = bench.rows.cache.data[:, :, (0, 2)].clone()
        program(bench, ops)(3, span=SPAN)
        changed = (bench.rows.cache.data[:, :, (0, 2)] != before).any(dim=-1)  # [L, 2, 2, H_kv, S]
        expected = torch.zeros_like(changed)
        expected[:, :, 0, :, LENGTHS[0]] = expected[:, :, 1, :, LENGTHS[2]] = True
        assert torch.equal(changed, expected)


@pytest.mark.slow
def test_without_projection_and_with_equal_widths(tmp_path: Path) -> None:
    from tests.engine.tiny_checkpoint import TinyShape

    bench = make_bench(load_tiny(tmp_path, TinyShape(predictor_hidden=64, kv_heads=4)), trailing=0)
    outcomes = []
    for ops in (PlainOps(), fused(bench)):
        in_the_middle(bench, LENGTHS, seed=8)
        bench.rows.trailing_length.zero_()
        program(bench, ops)(3, span=SPAN)
        outcomes.append(snapshot(bench.rows))
    assert torch.equal(outcomes[0]["codes"], outcomes[1]["codes"])
