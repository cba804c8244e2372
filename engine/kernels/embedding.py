"""Sums of embeddings, a program a row and a slice of the width."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from engine.frame_ops import Residual
from engine.kernels.launch import begin_small
from engine.rows import Rows


@triton.jit(do_not_specialize=["reach"])
def _frame_input(
    codes_ptr, first_ptr, rest_ptr, pad_ptr, trailing_ptr, length_ptr, frame_ptr, gain_ptr, wide_ptr, ready_ptr, squares_ptr,
    V, C, reach,
    GROUPS: tl.constexpr, BC: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    begin_small(OVERLAP)
    row = tl.program_id(0)
    at = tl.program_id(1) * BC + tl.arange(0, BC)
    inside = at < C
    total = tl.zeros([BC], tl.float32)
    for book in tl.static_range(1, GROUPS):
        code = tl.load(codes_ptr + row * GROUPS + book)
        line = ((book - 1) * V + code).to(tl.int64) * C
        total += tl.load(rest_ptr + line + at, mask=inside, other=0.0).to(tl.float32)
    code = tl.load(codes_ptr + row * GROUPS)
    total += tl.load(first_ptr + code * C + at, mask=inside, other=0.0).to(tl.float32)
    frame = tl.load(frame_ptr + row)
    if frame < tl.load(length_ptr + row):
        total += tl.load(trailing_ptr + (row * reach + frame) * C + at, mask=inside, other=0.0).to(tl.float32)
    else:
        total += tl.load(pad_ptr + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(wide_ptr + row * C + at, total, mask=inside)
    gain = tl.load(gain_ptr + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(ready_ptr + row * C + at, (total * gain).to(ready_ptr.dtype.element_ty), mask=inside)
    tl.store(squares_ptr + row * tl.num_programs(1) + tl.program_id(1), tl.sum(total * total, 0))


@triton.jit
def _as_stream(
    ids_ptr, table_ptr, gain_ptr, wide_ptr, ready_ptr, squares_ptr, C,
    LOOK_UP: tl.constexpr, BC: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    begin_small(OVERLAP)
    row = tl.program_id(0)
    line = row
    if LOOK_UP:
        line = tl.load(ids_ptr + row)
    at = tl.arange(0, BC)
    vector = tl.load(table_ptr + line * C + at, mask=at < C, other=0.0).to(tl.float32)
    gain = tl.load(gain_ptr + at, mask=at < C, other=0.0).to(tl.float32)
    tl.store(wide_ptr + row * C + at, vector, mask=at < C)
    tl.store(ready_ptr + row * C + at, (vector * gain).to(ready_ptr.dtype.element_ty), mask=at < C)
    tl.store(squares_ptr + row, tl.sum(vector * vector, 0))


FRAME_BLOCK = 256  # columns a program of `frame_input`


def frame_input(
    codes: Tensor,
    first: Tensor,
    rest: Tensor,
    pad_row: Tensor,
    rows: Rows,
    gain: Tensor,
    out: Residual,
    *,
    overlap: int = 0,
) -> None:
    """out [B, C] = the 16 embeddings of codes [B, 16], and the next trailing text row or `pad_row` [1, C]; squares
    in C / FRAME_BLOCK parts.
    """
    width = out.wide.shape[1]
    extra: dict[str, object] = {"launch_pdl": True} if overlap else {}
    _frame_input[(codes.shape[0], triton.cdiv(width, FRAME_BLOCK))](
        codes, first, rest, pad_row, rows.trailing, rows.trailing_length, rows.frame, gain, out.wide, out.ready, out.squares,
        rest.shape[1], width, rows.trailing.shape[1],
        GROUPS=rows.groups, BC=FRAME_BLOCK, OVERLAP=overlap, num_warps=2, **extra,
    )  # fmt: skip


def as_stream(vectors: Tensor, ids: Tensor | None, gain: Tensor, out: Residual, *, overlap: int = 0) -> None:
    """out [B, C] = the rows of `vectors` [V, C] with these ids [B], or vectors [B, C] themselves; squares in one
    part.
    """
    width = vectors.shape[1]
    extra: dict[str, object] = {"launch_pdl": True} if overlap else {}
    _as_stream[(out.wide.shape[0],)](
        ids, vectors, gain, out.wide, out.ready, out.squares, width,
        LOOK_UP=ids is not None, BC=triton.next_power_of_2(width), OVERLAP=overlap, num_warps=4, **extra,
    )  # fmt: skip
