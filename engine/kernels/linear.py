"""Skinny matrix products: a few rows times a large weight, limited by how fast the weight streams in.

A program owns BN output columns and the whole inner dimension, so no partial sums meet in memory and a row's result
does not depend on its neighbours. The tensor cores do the products: for one row as for sixteen the weight is what takes
the time, and the same instructions give the same bits. Only INT8 weights, for one or two rows, go through plain
multiply-adds on weights held in registers; on the tensor cores their conversion costs more than their size saves, so
larger batches read the BF16 weight.

RMSNorm costs no pass of its own: whoever writes the residual stream also writes it times the next norm's gain, and the
sum of squares of its own columns; the reader adds those up and multiplies its result by the reciprocal root. SiLU(gate)
* up, bias, INT8 scale and residual are epilogues.
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
from engine.kernels.launch import CHUNK_BYTES, begin_product, end_product, prefetch

FEW = 2  # rows up to which multiply-adds on INT8 weights beat the tensor cores on BF16 ones
LANES, WIDE = 32, 16  # lanes of a warp, INT8 weights of one 16-byte load


@dataclass(frozen=True, kw_only=True)
class Tile:
    """Launch shape: `columns` outputs a program, `depth` of the inner dimension a step."""

    columns: int
    depth: int
    warps: int = 4
    stages: int = 4


@triton.jit
def _early(
    rows, columns, M, N, squares_ptr, parts, old_ptr, gain_ptr,
    NORM: tl.constexpr, ADDED: tl.constexpr, STREAM: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """What the epilogue reads, asked for before the product so that nobody waits for it afterwards: parts of the
    squares [M, PARTS], old residual [M, BN], gain [BN]."""
    here, alive = columns < N, rows < M
    squares = 0.0
    old = 0.0
    gain = 0.0
    if NORM:
        part = tl.arange(0, PARTS)
        squares = tl.load(
            squares_ptr + rows[:, None] * parts + part[None, :],
            mask=alive[:, None] & (part < parts)[None, :],
            other=0.0,
        )
    if ADDED:
        old = tl.load(old_ptr + rows[:, None] * N + columns[None, :], mask=alive[:, None] & here[None, :], other=0.0)
    if STREAM:
        gain = tl.load(gain_ptr + columns, mask=here, other=0.0)
    return squares, old, gain


@triton.jit
def _finish(
    product, gates, squares, old, gain, rows, columns, M, N, K, eps, scale_ptr, bias_ptr, out_ptr, ready_ptr, next_ptr,
    NORM: tl.constexpr, GATED: tl.constexpr, SCALED: tl.constexpr, BIASED: tl.constexpr, ADDED: tl.constexpr,
    STREAM: tl.constexpr,
):  # fmt: skip
    """The epilogues on a block [M, BN]."""
    here, alive = columns < N, rows < M
    if SCALED:
        if GATED:
            gates *= tl.load(scale_ptr + columns, mask=here, other=0.0)[None, :]
            product *= tl.load(scale_ptr + N + columns, mask=here, other=0.0)[None, :]
        else:
            product *= tl.load(scale_ptr + columns, mask=here, other=0.0)[None, :]
    if NORM:
        factor = tl.rsqrt(tl.sum(squares, 1) / K + eps)[:, None]
        product *= factor
        gates *= factor
    if BIASED:
        product += tl.load(bias_ptr + columns, mask=here, other=0.0).to(tl.float32)[None, :]
    if GATED:
        product = product * gates / (1.0 + tl.exp(-gates))
    where = rows[:, None] * N + columns[None, :]
    mask = alive[:, None] & here[None, :]
    if ADDED:
        product += old
    tl.store(out_ptr + where, product.to(out_ptr.dtype.element_ty), mask=mask)
    if STREAM:
        tl.store(ready_ptr + where, (product * gain.to(tl.float32)[None, :]).to(ready_ptr.dtype.element_ty), mask=mask)
        sums = tl.sum(tl.where(mask, product * product, 0.0), 1)
        tl.store(next_ptr + rows * tl.num_programs(0) + tl.program_id(0), sums, mask=alive)


@triton.jit(do_not_specialize=["M", "parts", "ahead_rows", "ahead_chunks"])
def _few(
    x_ptr, w_ptr, squares_ptr, scale_ptr, bias_ptr, old_ptr, out_ptr, gain_ptr, ready_ptr, next_ptr,
    ahead_ptr, ahead_rows, ahead_width, ahead_chunks, M, N, K, parts, eps,
    BM: tl.constexpr, BN: tl.constexpr, STEPS: tl.constexpr, CHUNKS: tl.constexpr, LANES: tl.constexpr, WIDE: tl.constexpr,
    NORM: tl.constexpr, GATED: tl.constexpr, SCALED: tl.constexpr, BIASED: tl.constexpr, ADDED: tl.constexpr,
    STREAM: tl.constexpr, PARTS: tl.constexpr, CHUNK: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    DEPTH: tl.constexpr = CHUNKS * LANES * WIDE
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    rows = tl.arange(0, BM)
    inner = tl.arange(0, LANES)[:, None] * WIDE + tl.arange(0, WIDE)[None, :]  # [LANES, WIDE]
    chunk = tl.arange(0, CHUNKS) * (LANES * WIDE)
    # [CHUNKS, BN, LANES, WIDE]: a lane holds 16 bytes of every chunk, a warp whole rows of the weight.
    line = (
        w_ptr
        + tl.minimum(columns, N - 1).to(tl.int64)[None, :, None, None] * K
        + chunk[:, None, None, None]
        + inner[None, None, :, :]
    )
    w = tl.load(line)
    if GATED:
        u = tl.load(line + N.to(tl.int64) * K)
    prefetch(ahead_ptr, ahead_rows, ahead_width, ahead_chunks, CHUNK)
    begin_product(OVERLAP)
    squares, old, gain = _early(
        rows, columns, M, N, squares_ptr, parts, old_ptr, gain_ptr, NORM, ADDED, STREAM, PARTS
    )  # fmt: skip
    product = tl.zeros([BM, BN, LANES], tl.float32)
    gates = tl.zeros([BM, BN, LANES], tl.float32)
    for step in tl.static_range(STEPS):
        for m in tl.static_range(BM):
            x = tl.load(
                x_ptr + tl.minimum(m, M - 1) * K + step * DEPTH + chunk[:, None, None] + inner[None, :, :]
            ).to(tl.float32)[:, None, :, :]  # fmt: skip
            this = rows[:, None, None] == m
            part = tl.sum(tl.sum(w.to(tl.float32) * x, 3), 0)[None, :, :]  # [1, BN, LANES]
            if GATED:
                gates = tl.where(this, gates + part, gates)
                other = tl.sum(tl.sum(u.to(tl.float32) * x, 3), 0)[None, :, :]
                product = tl.where(this, product + other, product)
            else:
                product = tl.where(this, product + part, product)
        if step + 1 < STEPS:
            w = tl.load(line + (step + 1) * DEPTH)
            if GATED:
                u = tl.load(line + (step + 1) * DEPTH + N.to(tl.int64) * K)
    end_product(OVERLAP)
    _finish(
        tl.sum(product, 2), tl.sum(gates, 2), squares, old, gain, rows, columns, M, N, K, eps, scale_ptr, bias_ptr, out_ptr,
        ready_ptr, next_ptr, NORM, GATED, SCALED, BIASED, ADDED, STREAM,
    )  # fmt: skip


@triton.jit(do_not_specialize=["M", "parts", "ahead_rows", "ahead_chunks"])
def _many(
    x_ptr, w_ptr, squares_ptr, scale_ptr, bias_ptr, old_ptr, out_ptr, gain_ptr, ready_ptr, next_ptr,
    ahead_ptr, ahead_rows, ahead_width, ahead_chunks, M, N, K, parts, eps,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr,
    NORM: tl.constexpr, GATED: tl.constexpr, SCALED: tl.constexpr, BIASED: tl.constexpr, ADDED: tl.constexpr,
    STREAM: tl.constexpr, PARTS: tl.constexpr, CHUNK: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    here, alive = columns < N, rows < M
    deep = tl.arange(0, BK)
    prefetch(ahead_ptr, ahead_rows, ahead_width, ahead_chunks, CHUNK)
    begin_product(OVERLAP)
    squares, old, gain = _early(
        rows, columns, M, N, squares_ptr, parts, old_ptr, gain_ptr, NORM, ADDED, STREAM, PARTS
    )  # fmt: skip
    weights = w_ptr + columns.to(tl.int64)[:, None] * K
    inputs = x_ptr + rows[:, None] * K
    product = tl.zeros([BM, BN], tl.float32)
    gates = tl.zeros([BM, BN], tl.float32)
    for start in tl.range(0, K, BK, num_stages=STAGES):
        at = start + deep
        inside = at < K
        x = tl.load(inputs + at[None, :], mask=alive[:, None] & inside[None, :], other=0.0)
        w = tl.load(weights + at[None, :], mask=here[:, None] & inside[None, :], other=0)
        if GATED:
            gates = tl.dot(x, w.T, gates, input_precision="ieee")
            u = tl.load(weights + N.to(tl.int64) * K + at[None, :], mask=here[:, None] & inside[None, :], other=0)
            product = tl.dot(x, u.T, product, input_precision="ieee")
        else:
            product = tl.dot(x, w.T, product, input_precision="ieee")
    end_product(OVERLAP)
    _finish(
        product, gates, squares, old, gain, rows, columns, M, N, K, eps, scale_ptr, bias_ptr, out_ptr, ready_ptr, next_ptr,
        NORM, GATED, SCALED, BIASED, ADDED, STREAM,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Where a residual stream goes: `gain` of the norm that reads it next, and its tensors (see `Residual`)."""

    gain: Tensor
    ready: Tensor
    squares: Tensor


@dataclass(frozen=True, kw_only=True)
class Ahead:
    """Weights [rows, width] to ask the cache for: the first `chunks` chunks of every row."""

    weight: Tensor
    chunks: int


def ahead_of(matrix: Matrix, count: int, *, limit: int) -> Ahead | None:
    """What of a matrix's weights, as `count` rows read them, fits into `limit` bytes; None: nothing."""
    weight = matrix.packed if is_few(count, matrix) else matrix.weight
    assert weight is not None
    rows, width = weight.shape
    whole = width * weight.element_size() // CHUNK_BYTES
    chunks = min(whole, limit // (rows * CHUNK_BYTES))
    return Ahead(weight=weight, chunks=chunks) if chunks else None


def linear(
    x: Tensor,
    matrix: Matrix,
    tile: Tile,
    out: Tensor,
    *,
    squares: Tensor | None = None,
    eps: float = 0.0,
    gated: bool = False,
    old: Tensor | None = None,
    stream: Stream | None = None,
    overlap: int = 0,
    ahead: Ahead | None = None,
) -> None:
    """out [M, N] = x [M, K] through the matrix, with the epilogues that are given.

    Args:
        squares: [M, parts], sums of squares of the un-normed rows whose gained copy x is: the result is that of the
        normed rows. gated: the matrix is gate over up, out is silu(gate) * up. old: FP32 residual [M, N] that is added.
        stream: out is a residual stream; `stream.squares` is [M, programs(N, tile)]. overlap: see
        `engine.kernels.launch`. ahead: what the next product will read.
    """
    count, inner = x.shape
    columns = out.shape[1]
    extra: dict[str, object] = {"launch_pdl": True} if overlap else {}
    parts = 1 if squares is None else squares.shape[1]
    few = is_few(count, matrix)
    weight, scale = (matrix.packed, matrix.scale) if few else (matrix.weight, None)
    tensors = (
        x, weight, squares, scale, matrix.bias, old, out,
        None if stream is None else stream.gain, None if stream is None else stream.ready,
        None if stream is None else stream.squares, *_ahead_arguments(ahead), count, columns, inner, parts, eps,
    )  # fmt: skip
    flags = {
        "NORM": squares is not None, "GATED": gated, "SCALED": few, "BIASED": matrix.bias is not None,
        "ADDED": old is not None, "STREAM": stream is not None, "PARTS": triton.next_power_of_2(parts), "OVERLAP": overlap,
        "CHUNK": 0 if ahead is None else CHUNK_BYTES // ahead.weight.element_size(),
    }  # fmt: skip
    if few:
        _few[(triton.cdiv(columns, tile.columns),)](
            *tensors, BM=triton.next_power_of_2(count), BN=tile.columns, STEPS=inner // (tile.depth * LANES * WIDE),
            CHUNKS=tile.depth, LANES=LANES, WIDE=WIDE, num_warps=tile.warps, **flags, **extra,
        )  # fmt: skip
        return
    height = 16 if count <= 16 else 32
    _many[(triton.cdiv(columns, tile.columns), triton.cdiv(count, height))](
        *tensors, BM=height, BN=tile.columns, BK=tile.depth, STAGES=tile.stages,
        num_warps=tile.warps, num_stages=tile.stages, **flags, **extra,
    )  # fmt: skip


def _ahead_arguments(ahead: Ahead | None) -> tuple[Tensor | None, int, int, int]:
    if ahead is None:
        return None, 0, 0, 1
    return ahead.weight, *ahead.weight.shape, ahead.chunks


def is_few(count: int, matrix: Matrix) -> bool:
    """Whether `count` rows go through the multiply-add kernel, which needs an inner dimension of whole 16-byte loads
    a warp.
    """
    return matrix.packed is not None and count <= FEW and matrix.weight.shape[1] % (LANES * WIDE) == 0


def programs(columns: int, tile: Tile) -> int:
    """Programs along the output columns."""
    return -(-columns // tile.columns)


def fresh(count: int, width: int, parts: int, like: Tensor) -> Residual:
    """An unwritten residual stream whose squares come in `parts` parts."""
    wide = torch.empty(count, width, device=like.device, dtype=torch.float32)
    return Residual(
        wide=wide, ready=wide.new_empty(count, width, dtype=like.dtype), squares=wide.new_empty(count, parts)
    )
