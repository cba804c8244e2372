"""The draw, a program a row: what `engine.sampling` does, with settings read on the device so that one captured graph
serves all.

Top-k and top-p keep what lies at or above a threshold, found by bisection on the values instead of a sort: the k-th
largest value and its ties stay. With top-p, ids of exactly equal probability at the border stay or go together. The
end-of-speech id passes through the same filters as every other.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.frame_ops import Residual
from engine.frame_weights import StackWeights
from engine.kernels.launch import begin_small
from engine.rows import Rows

MIN_TOKENS = 2
BISECTIONS = 200  # more than a float's range can need


@dataclass(frozen=True, kw_only=True)
class Following:
    """The next input: rows of `table` [V, C] by the drawn code, as a stream (squares in one part) ready for `gain`."""

    table: Tensor
    gain: Tensor
    out: Residual


@triton.jit
def _keep_top_k(values, k, BISECTIONS: tl.constexpr):
    """Values below the k-th largest become -inf."""
    finite = values > float("-inf")
    if tl.sum(finite.to(tl.int32), 0) > k:
        low = tl.min(tl.where(finite, values, float("inf")), 0)  # invariant: at least k values are at or above
        high = tl.max(values, 0)
        kept = tl.sum((values >= high).to(tl.int32), 0)
        if kept >= k:
            low = high
        middle = low + (high - low) * 0.5
        turns = 0
        kept = -1
        while (kept != k) & (middle > low) & (middle < high) & (turns < BISECTIONS):
            kept = tl.sum((values >= middle).to(tl.int32), 0)
            low = tl.where(kept >= k, middle, low)
            high = tl.where(kept >= k, high, middle)
            middle = low + (high - low) * 0.5
            turns += 1
        values = tl.where(values >= low, values, float("-inf"))
    return values


@triton.jit
def _keep_top_p(values, share, BISECTIONS: tl.constexpr):
    """The most probable values whose mass reaches `share` stay; at least one."""
    peak = tl.max(values, 0)
    mass = tl.exp(values - peak)
    spare = (1.0 - share) * tl.sum(mass, 0)
    low = tl.min(tl.where(values > float("-inf"), values, float("inf")), 0)
    high = peak
    # Wanted: the smallest value t with mass(values <= t) > spare. Invariant: `high` has it; below `low` nothing has.
    if tl.sum(tl.where(values <= low, mass, 0.0), 0) > spare:
        high = low
    middle = low + (high - low) * 0.5
    turns = 0
    while (middle > low) & (middle < high) & (turns < BISECTIONS):
        enough = tl.sum(tl.where(values <= middle, mass, 0.0), 0) > spare
        high = tl.where(enough, middle, high)
        low = tl.where(enough, low, middle)
        middle = low + (high - low) * 0.5
        turns += 1
    return tl.where((values >= high) | (values == peak), values, float("-inf"))


@triton.jit
def _draw(values, uniform, settings_ptr, stride, row, V: tl.constexpr, BISECTIONS: tl.constexpr):
    """One id from logits [V] (-inf: impossible) by a row's temperature, top-k, top-p and strategy."""
    temperature = tl.load(settings_ptr + row)
    k = tl.load(settings_ptr + stride + row).to(tl.int32)
    share = tl.load(settings_ptr + 2 * stride + row)
    greedy = tl.load(settings_ptr + 3 * stride + row)
    chosen = tl.argmax(values, 0)
    if greedy == 0.0:
        scaled = values / temperature
        if k > 0:
            scaled = _keep_top_k(scaled, k, BISECTIONS)
        if share < 1.0:
            scaled = _keep_top_p(scaled, share, BISECTIONS)
        shares = tl.exp(scaled - tl.max(scaled, 0))
        shares = shares / tl.sum(shares, 0)
        reached = tl.cumsum(shares, 0)
        total = tl.max(reached, 0)
        chosen = tl.minimum(
            tl.sum((reached <= uniform * total).to(tl.int32), 0), tl.sum((reached < total).to(tl.int32), 0)
        )
    return chosen


@triton.jit(do_not_specialize=["stride", "codebook", "numbers", "frames"])
def _choose(
    logits_ptr, settings_ptr, stride, uniform_ptr, frame_ptr, code0_ptr, frame_codes_ptr, codes_ptr, table_ptr,
    gain_ptr, wide_ptr, ready_ptr, squares_ptr, codebook, V, C, numbers, frames,
    GROUPS: tl.constexpr, BV: tl.constexpr, BC: tl.constexpr, LAST: tl.constexpr,
    BISECTIONS: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    begin_small(OVERLAP)
    row = tl.program_id(0)
    ids = tl.arange(0, BV)
    logits = tl.load(logits_ptr + row * V + ids, mask=ids < V, other=float("-inf"))
    frame = tl.minimum(tl.load(frame_ptr + row), frames - 1)
    uniform = tl.load(uniform_ptr + (row * numbers + frame) * GROUPS + codebook)
    code = _draw(logits, uniform, settings_ptr, stride, row, BV, BISECTIONS)
    kept = codes_ptr + (row * frames + frame) * GROUPS
    tl.store(frame_codes_ptr + row * GROUPS + codebook, code.to(tl.int64))
    tl.store(kept + codebook, code.to(tl.int64))
    if LAST:
        code0 = tl.load(code0_ptr + row)
        tl.store(frame_codes_ptr + row * GROUPS, code0)
        tl.store(kept, code0)
    else:
        at = tl.arange(0, BC)
        vector = tl.load(table_ptr + code.to(tl.int64) * C + at, mask=at < C, other=0.0).to(tl.float32)
        gain = tl.load(gain_ptr + at, mask=at < C, other=0.0).to(tl.float32)
        tl.store(wide_ptr + row * C + at, vector, mask=at < C)
        tl.store(ready_ptr + row * C + at, (vector * gain).to(ready_ptr.dtype.element_ty), mask=at < C)
        tl.store(squares_ptr + row, tl.sum(vector * vector, 0))


@triton.jit(do_not_specialize=["stride", "numbers"])
def _commit(
    logits_ptr, settings_ptr, stride, uniform_ptr, row_ptr, frame_ptr, position_ptr, code0_ptr, seen_ptr, penalty_ptr,
    advance_ptr, x_ptr, gain_ptr, hidden_ptr, out_ptr, V, C, numbers, reserved, eos, eps,
    GROUPS: tl.constexpr, BV: tl.constexpr, BC: tl.constexpr, STEP: tl.constexpr, MIN_TOKENS: tl.constexpr,
    BISECTIONS: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    begin_small(OVERLAP)
    index = tl.program_id(0)
    row = tl.load(row_ptr + index)
    frame = tl.load(frame_ptr + row)
    if STEP:
        frame += 1
    ids = tl.arange(0, BV)
    logits = tl.load(logits_ptr + index * V + ids, mask=ids < V, other=float("-inf"))
    seen = tl.load(seen_ptr + row * V + ids, mask=ids < V, other=0) != 0
    penalty = tl.load(penalty_ptr + row)
    logits = tl.where(seen, tl.where(logits > 0, logits / penalty, logits * penalty), logits)
    never = ((ids >= reserved) & (ids != eos)) | ((ids == eos) & (frame < MIN_TOKENS))
    logits = tl.where(never, float("-inf"), logits)
    uniform = tl.load(uniform_ptr + (row * numbers + tl.minimum(frame, numbers - 1)) * GROUPS)
    code = _draw(logits, uniform, settings_ptr, stride, row, BV, BISECTIONS).to(tl.int64)
    tl.store(out_ptr + index, code)
    moved = True
    if STEP:
        moved = tl.load(advance_ptr + row) != 0
    if moved:
        tl.store(code0_ptr + row, code)
        tl.store(seen_ptr + row * V + code, 1)
        if STEP:
            tl.store(frame_ptr + row, frame)
            tl.store(position_ptr + row, tl.load(position_ptr + row) + 1)
            at = tl.arange(0, BC)
            x = tl.load(x_ptr + index * C + at, mask=at < C, other=0.0).to(tl.float32)
            gain = tl.load(gain_ptr + at, mask=at < C, other=0.0).to(tl.float32)
            normed = x * tl.rsqrt(tl.sum(x * x, 0) / C + eps) * gain
            tl.store(hidden_ptr + row * C + at, normed.to(hidden_ptr.dtype.element_ty), mask=at < C)


def choose(
    logits: Tensor,
    rows: Rows,
    frame_codes: Tensor,
    codebook: int,
    following: Following | None,
    *,
    overlap: int = 0,
) -> None:
    """Draw `codebook` for every row of logits [B, V] into the frame in work and the codes; None: it is the frame's
    last.
    """
    last = following is None
    table = gain = out = None
    if following is not None:
        table, gain, out = following.table, following.gain, following.out
    width = 1 if table is None else table.shape[1]
    settings = rows.predictor_sampling.numbers
    extra: dict[str, object] = {"launch_pdl": True} if overlap else {}
    _choose[(logits.shape[0],)](
        logits, settings, settings.stride(0), rows.uniform, rows.frame, rows.code0, frame_codes, rows.codes, table, gain,
        None if out is None else out.wide, None if out is None else out.ready, None if out is None else out.squares,
        codebook, logits.shape[1], width, rows.uniform.shape[1], rows.codes.shape[1],
        GROUPS=rows.groups, BV=triton.next_power_of_2(logits.shape[1]), BC=triton.next_power_of_2(width),
        LAST=last, BISECTIONS=BISECTIONS, OVERLAP=overlap, num_warps=4, **extra,
    )  # fmt: skip


def commit(
    logits: Tensor, rows: Rows, index: Tensor, *, reserved: int, eos: int, step: tuple[Tensor, StackWeights] | None, out: Tensor,
    overlap: int = 0,
) -> None:  # fmt: skip
    """Draw codebook 0 for the rows `index` [B] into out [B] and make it their state.

    Args:
        reserved: first control id; control ids other than `eos` are impossible, and so is `eos` for the first two
        tokens. step: the un-normed stream [B, C] and the stack of a frame step, which also advances the rows with
        `rows.advance`; None: the first
            draw after a prefill.
    """
    settings, width = rows.talker_sampling.numbers, rows.hidden.shape[1]
    x, gain, eps = (None, None, 0.0) if step is None else (step[0], step[1].norm, step[1].config.eps)
    extra: dict[str, object] = {"launch_pdl": True} if overlap else {}
    _commit[(logits.shape[0],)](
        logits, settings, settings.stride(0), rows.uniform, index, rows.frame, rows.position, rows.code0,
        rows.seen.view(torch.int8), rows.penalty, rows.advance.view(torch.int8), x, gain, rows.hidden, out,
        logits.shape[1], width, rows.uniform.shape[1], reserved, eos, eps,
        GROUPS=rows.groups, BV=triton.next_power_of_2(logits.shape[1]), BC=triton.next_power_of_2(width),
        STEP=step is not None, MIN_TOKENS=MIN_TOKENS, BISECTIONS=BISECTIONS, OVERLAP=overlap, num_warps=8, **extra,
    )  # fmt: skip
