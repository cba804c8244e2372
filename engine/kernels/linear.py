"""Skinny matrix products: a few rows times a large weight, limited by how fast the weight streams in.

A program owns BN output columns for BM rows and the whole inner dimension, so no partial sums meet and a row's result does not depend on how many
rows there are. RMSNorm is a prologue (the gain multiplies the row on the way in, the reciprocal root the result on the way out, the sum of squares is
taken in passing), SiLU(gate) * up, bias, INT8 scale and the residual are epilogues.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.frame_ops import Residual
from engine.frame_weights import Matrix
from engine.kernels.launch import await_inputs, begin, prefetch


@dataclass(frozen=True, kw_only=True)
class Tile:
    """Launch shape: `columns` outputs a program, `depth` of the inner dimension a step."""

    columns: int
    depth: int
    warps: int = 4
    stages: int = 4
    ahead: int = 2048  # inner elements of each weight row that are prefetched before the inputs are awaited; 0: none


@triton.jit
def _linear(
    x_ptr, w_ptr, gain_ptr, scale_ptr, bias_ptr, old_ptr, out_ptr, narrow_ptr,
    M, N, K, eps,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, AHEAD: tl.constexpr,
    NORM: tl.constexpr, GATED: tl.constexpr, SCALED: tl.constexpr, BIASED: tl.constexpr,
    RESIDUAL: tl.constexpr, BOTH: tl.constexpr, STAGES: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    begin(OVERLAP)
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    here, alive = columns < N, rows < M
    deep = tl.arange(0, BK)
    weights = w_ptr + columns.to(tl.int64)[:, None] * K
    if OVERLAP and AHEAD > 0:
        LINE: tl.constexpr = 128 // (w_ptr.dtype.element_ty.primitive_bitwidth // 8)
        lines = tl.arange(0, AHEAD // LINE) * LINE
        near = tl.minimum(lines, K - 1)[None, :]
        prefetch(w_ptr + tl.minimum(columns, N - 1).to(tl.int64)[:, None] * K + near)
        if GATED:
            prefetch(w_ptr + (tl.minimum(columns, N - 1) + N).to(tl.int64)[:, None] * K + near)
    await_inputs(OVERLAP)
    inputs = x_ptr + rows[:, None] * K
    product = tl.zeros([BM, BN], tl.float32)
    gates = tl.zeros([BM, BN], tl.float32)
    squares = tl.zeros([BM], tl.float32)
    for start in tl.range(0, K, BK, num_stages=STAGES):
        at = start + deep
        inside = at < K
        x = tl.load(inputs + at[None, :], mask=alive[:, None] & inside[None, :], other=0.0)
        w = tl.load(weights + at[None, :], mask=here[:, None] & inside[None, :], other=0)
        if NORM:
            wide = x.to(tl.float32)
            squares += tl.sum(wide * wide, 1)
            gain = tl.load(gain_ptr + at, mask=inside, other=0.0).to(tl.float32)
            x = (wide * gain[None, :]).to(x_ptr.dtype.element_ty)
        if SCALED:
            w = w.to(x_ptr.dtype.element_ty)
        if GATED:
            gates = tl.dot(x, w.T, gates, input_precision="ieee")
            u = tl.load(weights + N.to(tl.int64) * K + at[None, :], mask=here[:, None] & inside[None, :], other=0)
            if SCALED:
                u = u.to(x_ptr.dtype.element_ty)
            product = tl.dot(x, u.T, product, input_precision="ieee")
        else:
            product = tl.dot(x, w.T, product, input_precision="ieee")
    if NORM:
        factor = tl.rsqrt(squares / K + eps)[:, None]
        product *= factor
        gates *= factor
    if SCALED:
        if GATED:
            gates *= tl.load(scale_ptr + columns, mask=here, other=0.0)[None, :]
            product *= tl.load(scale_ptr + N + columns, mask=here, other=0.0)[None, :]
        else:
            product *= tl.load(scale_ptr + columns, mask=here, other=0.0)[None, :]
    if BIASED:
        product += tl.load(bias_ptr + columns, mask=here, other=0.0).to(tl.float32)[None, :]
    if GATED:
        product = product * gates / (1.0 + tl.exp(-gates))
    where = rows[:, None] * N + columns[None, :]
    mask = alive[:, None] & here[None, :]
    if RESIDUAL:
        product += tl.load(old_ptr + where, mask=mask, other=0.0)
    tl.store(out_ptr + where, product.to(out_ptr.dtype.element_ty), mask=mask)
    if BOTH:
        tl.store(narrow_ptr + where, product.to(narrow_ptr.dtype.element_ty), mask=mask)


def linear(
    x: Tensor,
    matrix: Matrix,
    tile: Tile,
    out: Tensor,
    *,
    gain: Tensor | None = None,
    eps: float = 0.0,
    gated: bool = False,
    old: Tensor | None = None,
    narrow: Tensor | None = None,
    overlap: bool = False,
) -> None:
    """out [M, N] = x [M, K] through the matrix, with the prologue and epilogues that are given.

    Args:
        gain, eps: RMSNorm of x first. gated: the matrix is gate over up, out is silu(gate) * up.
        old: FP32 residual [M, N] that is added. narrow: a second output in its own type.
    """
    count, inner = x.shape
    columns = out.shape[1]
    height = 16 if count <= 16 else 32
    grid = (triton.cdiv(columns, tile.columns), triton.cdiv(count, height))
    extra: dict[str, object] = {"launch_pdl": True} if overlap else {}
    _linear[grid](
        x, matrix.weight, gain, matrix.scale, matrix.bias, old, out, narrow,
        count, columns, inner, eps,
        BM=height, BN=tile.columns, BK=tile.depth, AHEAD=tile.ahead,
        NORM=gain is not None, GATED=gated, SCALED=matrix.scale is not None, BIASED=matrix.bias is not None,
        RESIDUAL=old is not None, BOTH=narrow is not None, STAGES=tile.stages, OVERLAP=overlap,
        num_warps=tile.warps, num_stages=tile.stages, **extra,
    )  # fmt: skip


def fresh(count: int, width: int, like: Tensor) -> Residual:
    """An unwritten residual stream; where the weights are FP32 one tensor serves as both."""
    wide = torch.empty(count, width, device=like.device, dtype=torch.float32)
    return Residual(wide=wide, narrow=wide if like.dtype is torch.float32 else wide.new_empty(count, width, dtype=like.dtype))
