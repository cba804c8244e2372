"""The skinny products against plain torch, with every epilogue, on fresh inputs with poisoned outputs."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.frame_ops import Residual
from engine.frame_weights import Matrix
from engine.kernels.linear import FEW, Stream, Tile, ahead_of, is_few, linear, programs
from engine.plain_ops import PlainOps, apply, residual

EPS = 1e-6
PLAIN = PlainOps()
INNER = 96
FEW_TILE, MANY_TILE = Tile(columns=8, depth=1), Tile(columns=8, depth=32, stages=2)


def fresh_inputs(rows: int, columns: int, seed: int, inner: int = INNER) -> tuple[torch.Tensor, Matrix, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, inner, generator=generator)
    weight = torch.randn(columns, inner, generator=generator) / inner**0.5
    return x, Matrix(weight=weight), torch.rand(inner, generator=generator) + 0.5


def poisoned(*shape: int) -> torch.Tensor:
    return torch.full(shape, float("nan"))


def tile(rows: int, matrix: Matrix) -> Tile:
    return FEW_TILE if is_few(rows, matrix) else MANY_TILE


def gained(x: torch.Tensor, gain: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A stream as kernels hand it on: times the gain, and its squares in two parts."""
    return x * gain, torch.stack([part.square().sum(1) for part in x.chunk(2, dim=1)], dim=1)


@pytest.mark.parametrize("rows", [1, 3, 18])
@pytest.mark.parametrize("gated", [False, True])
def test_product_of_the_normed_stream(rows: int, gated: bool) -> None:
    x, matrix, gain = fresh_inputs(rows, 24, seed=rows)
    out = poisoned(rows, 12 if gated else 24)
    ready, squares = gained(x, gain)
    linear(ready, matrix, tile(rows, matrix), out, squares=squares, eps=EPS, gated=gated)
    twin = PLAIN.gated if gated else PLAIN.project
    torch.testing.assert_close(out, twin(residual(x, gain, EPS), matrix, EPS), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [2, 17])
def test_residual_stream(rows: int) -> None:
    y, matrix, _ = fresh_inputs(rows, 40, seed=1)
    old, gain = torch.randn(rows, 40), torch.rand(40) + 0.5
    wide, ready = poisoned(rows, 40), poisoned(rows, 40)
    squares = poisoned(rows, programs(40, tile(rows, matrix)))
    linear(y, matrix, tile(rows, matrix), wide, old=old, stream=Stream(gain=gain, ready=ready, squares=squares))
    expected = PLAIN.extend(Residual(wide=old, ready=old), y, matrix, gain=gain, eps=EPS)
    torch.testing.assert_close(wide, expected.wide, rtol=1e-5, atol=1e-5)
    normed = ready * torch.rsqrt(squares.sum(1) / 40 + EPS)[:, None]
    torch.testing.assert_close(normed, expected.ready, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [1, FEW])
@pytest.mark.parametrize("gated", [False, True])
def test_int8_weight_is_dequantised_by_its_channel(rows: int, gated: bool) -> None:
    x, matrix, gain = fresh_inputs(rows, 32, seed=2, inner=1024)
    packed = torch.randint(-127, 128, (32, 1024), dtype=torch.int8)
    quantised = replace(matrix, packed=packed, scale=torch.rand(32) / 100)
    assert is_few(rows, quantised)
    out = poisoned(rows, 16 if gated else 32)
    ready, squares = gained(x, gain)
    linear(ready, quantised, FEW_TILE, out, squares=squares, eps=EPS, gated=gated)
    twin = PLAIN.gated if gated else PLAIN.project
    torch.testing.assert_close(out, twin(residual(x, gain, EPS), quantised, EPS), rtol=1e-4, atol=1e-4)


def test_larger_batches_of_a_quantised_matrix_read_the_original_weight() -> None:
    x, matrix, _ = fresh_inputs(FEW + 1, 32, seed=2, inner=1024)
    quantised = replace(matrix, packed=torch.ones(32, 1024, dtype=torch.int8), scale=torch.ones(32))
    out = poisoned(FEW + 1, 32)
    linear(x, quantised, tile(FEW + 1, quantised), out)
    torch.testing.assert_close(out, apply(matrix, x), rtol=1e-5, atol=1e-5)


def test_bias() -> None:
    x, matrix, _ = fresh_inputs(2, 16, seed=3)
    biased = Matrix(weight=matrix.weight, bias=torch.randn(16))
    out = poisoned(2, 16)
    linear(x, biased, MANY_TILE, out)
    torch.testing.assert_close(out, apply(biased, x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [8, 16])
def test_a_row_does_not_depend_on_the_rows_beside_it(rows: int) -> None:
    x, matrix, _ = fresh_inputs(rows, 24, seed=4)
    others, together = poisoned(rows, 24), poisoned(rows, 24)
    linear(x, matrix, tile(rows, matrix), together)
    changed = torch.randn_like(x)
    changed[5] = x[5]
    linear(changed, matrix, tile(rows, matrix), others)
    assert torch.equal(others[5], together[5])


def test_what_is_asked_for_ahead_is_the_weight_that_these_rows_read_and_no_more_than_the_limit() -> None:
    matrix = Matrix(weight=torch.zeros(8, 1024, dtype=torch.bfloat16))  # 4 chunks a row
    quantised = replace(matrix, packed=torch.zeros(8, 1024, dtype=torch.int8), scale=torch.ones(8))
    whole, part = ahead_of(matrix, 1, limit=1 << 20), ahead_of(matrix, 1, limit=3 * 8 * 512 + 511)
    assert whole is not None
    assert part is not None
    assert (whole.chunks, part.chunks) == (4, 3)
    few, many = ahead_of(quantised, FEW, limit=1 << 20), ahead_of(quantised, FEW + 1, limit=1 << 20)
    assert few is not None
    assert many is not None
    assert (few.weight is quantised.packed, few.chunks, many.weight is matrix.weight) == (True, 2, True)
    assert ahead_of(matrix, 1, limit=8 * 512 - 1) is None
