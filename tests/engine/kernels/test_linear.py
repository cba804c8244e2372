"""The skinny product against plain torch, with every prologue and epilogue, on fresh inputs with poisoned outputs."""

from __future__ import annotations

import pytest
import torch

from engine.frame_ops import Residual
from engine.frame_weights import Matrix
from engine.kernels.linear import Tile, linear
from engine.plain_ops import PlainOps, apply, residual

TILE = Tile(columns=8, depth=32, stages=2, ahead=0)
PLAIN = PlainOps()


def fresh_inputs(rows: int, inner: int, columns: int, seed: int) -> tuple[torch.Tensor, Matrix, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, inner, generator=generator)
    weight = torch.randn(columns, inner, generator=generator) / inner**0.5
    return x, Matrix(weight=weight), torch.rand(inner, generator=generator) + 0.5


def poisoned(*shape: int) -> torch.Tensor:
    return torch.full(shape, float("nan"))


@pytest.mark.parametrize(("rows", "inner", "columns"), [(1, 64, 24), (5, 96, 20), (18, 80, 40)])
def test_norm_prologue(rows: int, inner: int, columns: int) -> None:
    x, matrix, gain = fresh_inputs(rows, inner, columns, seed=rows)
    out = poisoned(rows, columns)
    linear(x, matrix, TILE, out, gain=gain, eps=1e-6)
    torch.testing.assert_close(out, PLAIN.project(residual(x, x.dtype), gain, 1e-6, matrix), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 7, 33])
def test_gated(rows: int) -> None:
    x, matrix, gain = fresh_inputs(rows, 64, 48, seed=rows)
    out = poisoned(rows, 24)
    linear(x, matrix, TILE, out, gain=gain, eps=1e-6, gated=True)
    torch.testing.assert_close(out, PLAIN.gated(residual(x, x.dtype), gain, 1e-6, matrix), rtol=1e-5, atol=1e-5)


def test_residual_and_narrow_copy() -> None:
    y, matrix, _ = fresh_inputs(4, 64, 40, seed=1)
    old = torch.randn(4, 40)
    wide, narrow = poisoned(4, 40), poisoned(4, 40).half()
    linear(y, matrix, TILE, wide, old=old, narrow=narrow)
    expected = PLAIN.extend(Residual(wide=old, narrow=old), y, matrix).wide
    torch.testing.assert_close(wide, expected, rtol=1e-5, atol=1e-5)
    assert torch.equal(narrow, wide.half())


@pytest.mark.parametrize("gated", [False, True])
def test_int8_weight_is_dequantised_by_its_channel(gated: bool) -> None:
    x, _, gain = fresh_inputs(3, 64, 32, seed=2)
    matrix = Matrix(weight=torch.randint(-127, 128, (32, 64), dtype=torch.int8), scale=torch.rand(32) / 100)
    out = poisoned(3, 16 if gated else 32)
    linear(x, matrix, TILE, out, gain=gain, eps=1e-6, gated=gated)
    twin = PLAIN.gated if gated else PLAIN.project
    torch.testing.assert_close(out, twin(residual(x, x.dtype), gain, 1e-6, matrix), rtol=1e-5, atol=1e-5)


def test_bias() -> None:
    x, matrix, _ = fresh_inputs(2, 64, 16, seed=3)
    biased = Matrix(weight=matrix.weight, bias=torch.randn(16))
    out = poisoned(2, 16)
    linear(x, biased, TILE, out)
    torch.testing.assert_close(out, apply(biased, x), rtol=1e-5, atol=1e-5)


def test_a_row_does_not_depend_on_the_rows_beside_it() -> None:
    x, matrix, gain = fresh_inputs(16, 64, 24, seed=4)
    alone, together = poisoned(1, 24), poisoned(16, 24)
    linear(x[5:6].contiguous(), matrix, TILE, alone, gain=gain, eps=1e-6)
    linear(x, matrix, TILE, together, gain=gain, eps=1e-6)
    torch.testing.assert_close(alone[0], together[5], rtol=1e-6, atol=1e-6)
