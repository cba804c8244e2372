"""Sums of embeddings, a program a row and a slice of the width."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from engine.frame_ops import Residual
from engine.kernels.launch import await_inputs, begin
from engine.rows import Rows


@triton.jit
def _frame_input(
    codes_ptr, first_ptr, rest_ptr, pad_ptr, trailing_ptr, length_ptr, frame_ptr, wide_ptr, narrow_ptr,
    V, C, reach,
    GROUPS: tl.constexpr, BC: tl.constexpr, BOTH: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    begin(OVERLAP)
    await_inputs(OVERLAP)
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
    if BOTH:
        tl.store(narrow_ptr + row * C + at, total.to(narrow_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _look_up(ids_ptr, table_ptr, wide_ptr, narrow_ptr, C, BC: tl.constexpr, BOTH: tl.constexpr, OVERLAP: tl.constexpr):
    begin(OVERLAP)
    await_inputs(OVERLAP)
    row = tl.program_id(0)
    at = tl.arange(0, BC)
    vector = tl.load(table_ptr + tl.load(ids_ptr + row) * C + at, mask=at < C, other=0.0)
    tl.store(wide_ptr + row * C + at, vector.to(tl.float32), mask=at < C)
    if BOTH:
        tl.store(narrow_ptr + row * C + at, vector, mask=at < C)


def frame_input(
    codes: Tensor, first: Tensor, rest: Tensor, pad_row: Tensor, rows: Rows, out: Residual, *, overlap: bool = False
) -> None:
    """out [B, C] = the 16 embeddings of codes [B, 16], and the next trailing text row or `pad_row` [1, C]."""
    width, block = out.wide.shape[1], 256
    extra: dict[str, object] = {"launch_pdl": True} if overlap else {}
    _frame_input[(codes.shape[0], triton.cdiv(width, block))](
        codes, first, rest, pad_row, rows.trailing, rows.trailing_length, rows.frame, out.wide, out.narrow,
        rest.shape[1], width, rows.trailing.shape[1],
        GROUPS=rows.groups, BC=block, BOTH=out.narrow is not out.wide, OVERLAP=overlap, num_warps=2, **extra,
    )  # fmt: skip


def look_up(ids: Tensor, table: Tensor, out: Residual, *, overlap: bool = False) -> None:
    """out [B, C] = the table's rows [V, C] of ids [B]."""
    width = table.shape[1]
    extra: dict[str, object] = {"launch_pdl": True} if overlap else {}
    _look_up[(ids.shape[0],)](
        ids, table, out.wide, out.narrow, width,
        BC=triton.next_power_of_2(width), BOTH=out.narrow is not out.wide, OVERLAP=overlap, num_warps=4, **extra,
    )  # fmt: skip
