"""Attention of one new position a row: the talker over its whole past, the predictor over the positions of one frame.

Both take the joined qkv row, normalise and rotate queries and keys in FP32, write keys and values to the cache and
attend. A program serves the G query heads of one key/value head. The talker's past is dealt out in blocks to SPLITS
programs, whose partial softmax sums the last to finish joins in a fixed order; which blocks a program takes depends on
the row's own length alone, so a row's result does not depend on the batch.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.frame_weights import StackWeights
from engine.kernels.launch import begin_small
from engine.kv import KVCache

SPLITS = 8
BLOCK = 32  # past positions a step


@triton.jit
def _normed_turned(pointers_lo, pointers_hi, gain_lo, gain_hi, cos, sin, eps, D: tl.constexpr, TYPE: tl.constexpr):
    """RMSNorm over the head dimension and half-split rotation of [R, D/2] pairs, rounded to TYPE."""
    lo, hi = tl.load(pointers_lo).to(tl.float32), tl.load(pointers_hi).to(tl.float32)
    factor = tl.rsqrt((tl.sum(lo * lo, 1) + tl.sum(hi * hi, 1)) / D + eps)[:, None]
    lo = (lo * factor * gain_lo).to(TYPE).to(tl.float32)
    hi = (hi * factor * gain_hi).to(TYPE).to(tl.float32)
    turned_lo = (lo * cos - hi * sin).to(TYPE).to(tl.float32)
    turned_hi = (hi * cos + lo * sin).to(TYPE).to(tl.float32)
    return turned_lo, turned_hi


@triton.jit(do_not_specialize=["positions"])
def _past(
    qkv_ptr, key_ptr, value_ptr, position_ptr, cos_ptr, sin_ptr, gain_ptr, out_ptr, sums_ptr, stats_ptr, ticket_ptr,
    positions, row_stride, head_stride, eps, scale,
    KV: tl.constexpr, G: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr, SPLITS: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    begin_small(OVERLAP)
    row, head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    TYPE: tl.constexpr = key_ptr.dtype.element_ty
    HALF: tl.constexpr = D // 2
    position = tl.minimum(tl.load(position_ptr + row), positions - 1).to(tl.int32)
    active = tl.minimum(SPLITS, tl.maximum(1, tl.cdiv(position, BLOCK)))
    if split < active:
        half, whole, group, one = tl.arange(0, HALF), tl.arange(0, D), tl.arange(0, G), tl.arange(0, 1)
        cos = tl.load(cos_ptr + position * D + half)[None, :]
        sin = tl.load(sin_ptr + position * D + half)[None, :]
        base = qkv_ptr + row * (KV * G + 2 * KV) * D
        queries = base + (head * G + group)[:, None] * D + half[None, :]
        gains = gain_ptr + (head * G + group)[:, None] * D + half[None, :]
        q_lo, q_hi = _normed_turned(
            queries,
            queries + HALF,
            tl.load(gains).to(tl.float32),
            tl.load(gains + HALF).to(tl.float32),
            cos,
            sin,
            eps,
            D,
            TYPE,
        )
        new = (KV * G + head + one)[:, None] * D + half[None, :]
        k_lo, k_hi = _normed_turned(
            base + new, base + new + HALF, tl.load(gain_ptr + new).to(tl.float32), tl.load(gain_ptr + new + HALF).to(tl.float32),
            cos, sin, eps, D, TYPE,
        )  # fmt: skip
        v = tl.load(base + (KV * G + KV + head) * D + whole)
        store = row.to(tl.int64) * row_stride + head * head_stride
        keys, values = key_ptr + store, value_ptr + store
        first = split == 0
        here = position * D + one[:, None] * D + half[None, :]
        tl.store(keys + here, k_lo.to(TYPE), mask=first)
        tl.store(keys + here + HALF, k_hi.to(TYPE), mask=first)
        tl.store(values + position * D + whole, v, mask=first)
        # The new position belongs to split 0; the others begin with nothing.
        score = (tl.sum(q_lo * k_lo, 1) + tl.sum(q_hi * k_hi, 1)) * scale  # [G]
        peak = tl.where(first, score, float("-inf"))
        weight = tl.where(first, 1.0, 0.0) + tl.zeros([G], tl.float32)
        mixed = tl.where(first, 1.0, 0.0) * v.to(tl.float32)[None, :] + tl.zeros([G, D], tl.float32)
        for start in range(split * BLOCK, position, SPLITS * BLOCK):
            at = start + tl.arange(0, BLOCK)
            inside = at < position
            where = at[:, None] * D + half[None, :]
            past_lo = tl.load(keys + where, mask=inside[:, None], other=0.0).to(tl.float32)
            past_hi = tl.load(keys + where + HALF, mask=inside[:, None], other=0.0).to(tl.float32)
            past_v = tl.load(values + at[:, None] * D + whole[None, :], mask=inside[:, None], other=0.0).to(tl.float32)
            scores = tl.sum(q_lo[:, None, :] * past_lo[None, :, :], 2) + tl.sum(
                q_hi[:, None, :] * past_hi[None, :, :], 2
            )
            scores = tl.where(inside[None, :], scores * scale, float("-inf"))  # [G, BLOCK]
            top = tl.maximum(peak, tl.max(scores, 1))
            shrink = tl.exp(peak - top)
            shares = tl.exp(scores - top[:, None])
            weight = weight * shrink + tl.sum(shares, 1)
            mixed = mixed * shrink[:, None] + tl.sum(shares[:, :, None] * past_v[None, :, :], 1)
            peak = top
        target = out_ptr + row * KV * G * D + (head * G + group)[:, None] * D + whole[None, :]
        if active == 1:
            tl.store(target, (mixed / weight[:, None]).to(out_ptr.dtype.element_ty))
        else:
            slot = (row * KV + head) * SPLITS
            tl.store(sums_ptr + ((slot + split) * G + group)[:, None] * D + whole[None, :], mixed)
            tl.store(stats_ptr + (slot + split) * 2 * G + group, peak)
            tl.store(stats_ptr + (slot + split) * 2 * G + G + group, weight)
            tl.debug_barrier()
            done = tl.atomic_add(ticket_ptr + row * KV + head, 1, sem="acq_rel", scope="gpu")
            if done == active - 1:
                splits = tl.arange(0, SPLITS)
                valid = splits < active
                stats = stats_ptr + (slot + splits)[:, None] * 2 * G + group[None, :]
                peaks = tl.load(stats, mask=valid[:, None], other=float("-inf"), cache_modifier=".cg")  # [SPLITS, G]
                weights = tl.load(stats + G, mask=valid[:, None], other=0.0, cache_modifier=".cg")
                shares = tl.exp(peaks - tl.max(peaks, 0)[None, :])
                total = tl.sum(shares * weights, 0)
                sums = sums_ptr + ((slot + splits)[:, None, None] * G + group[None, :, None]) * D + whole[None, None, :]
                parts = tl.load(sums, mask=valid[:, None, None], other=0.0, cache_modifier=".cg")
                joined = tl.sum(parts * shares[:, :, None], 0) / total[:, None]
                tl.store(target, joined.to(out_ptr.dtype.element_ty))
                tl.store(ticket_ptr + row * KV + head, 0)


@triton.jit(do_not_specialize=["count", "start"])
def _frame(
    qkv_ptr, key_ptr, value_ptr, cos_ptr, sin_ptr, gain_ptr, out_ptr,
    count, start, row_stride, head_stride, eps, scale,
    KV: tl.constexpr, G: tl.constexpr, D: tl.constexpr, SPAN: tl.constexpr, WIDTH: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    begin_small(OVERLAP)
    row, head = tl.program_id(0), tl.program_id(1)
    TYPE: tl.constexpr = key_ptr.dtype.element_ty
    HALF: tl.constexpr = D // 2
    half, whole, group, one = tl.arange(0, HALF), tl.arange(0, D), tl.arange(0, G), tl.arange(0, 1)
    store = row.to(tl.int64) * row_stride + head * head_stride
    keys, values = key_ptr + store, value_ptr + store
    gains = gain_ptr + (head * G + group)[:, None] * D + half[None, :]
    q_gain_lo, q_gain_hi = tl.load(gains).to(tl.float32), tl.load(gains + HALF).to(tl.float32)
    new = (KV * G + head + one)[:, None] * D + half[None, :]
    k_gain_lo, k_gain_hi = tl.load(gain_ptr + new).to(tl.float32), tl.load(gain_ptr + new + HALF).to(tl.float32)
    if WIDTH == 2:  # position `start` sees itself alone; its keys and values then join position start + 1
        base = qkv_ptr + row * (KV * G + 2 * KV) * D
        cos, sin = tl.load(cos_ptr + start * D + half)[None, :], tl.load(sin_ptr + start * D + half)[None, :]
        old_lo, old_hi = _normed_turned(base + new, base + new + HALF, k_gain_lo, k_gain_hi, cos, sin, eps, D, TYPE)
        old_v = tl.load(base + (KV * G + KV + head) * D + whole)
        here = start * D + one[:, None] * D + half[None, :]
        tl.store(keys + here, old_lo.to(TYPE))
        tl.store(keys + here + HALF, old_hi.to(TYPE))
        tl.store(values + start * D + whole, old_v)
        target = out_ptr + row * KV * G * D + (head * G + group)[:, None] * D + whole[None, :]
        tl.store(target, (old_v[None, :] + tl.zeros([G, D], old_v.dtype)).to(out_ptr.dtype.element_ty))
    at = start + WIDTH - 1
    line = (WIDTH - 1) * count + row
    base = qkv_ptr + line * (KV * G + 2 * KV) * D
    cos, sin = tl.load(cos_ptr + at * D + half)[None, :], tl.load(sin_ptr + at * D + half)[None, :]
    queries = base + (head * G + group)[:, None] * D + half[None, :]
    q_lo, q_hi = _normed_turned(queries, queries + HALF, q_gain_lo, q_gain_hi, cos, sin, eps, D, TYPE)
    k_lo, k_hi = _normed_turned(base + new, base + new + HALF, k_gain_lo, k_gain_hi, cos, sin, eps, D, TYPE)
    v = tl.load(base + (KV * G + KV + head) * D + whole)
    here = at * D + one[:, None] * D + half[None, :]
    tl.store(keys + here, k_lo.to(TYPE))
    tl.store(keys + here + HALF, k_hi.to(TYPE))
    tl.store(values + at * D + whole, v)
    score = (tl.sum(q_lo * k_lo, 1) + tl.sum(q_hi * k_hi, 1)) * scale  # [G]
    if WIDTH == 2:
        other = (tl.sum(q_lo * old_lo, 1) + tl.sum(q_hi * old_hi, 1)) * scale
        top = tl.maximum(score, other)
        share, rest = tl.exp(score - top), tl.exp(other - top)
        mixed = share[:, None] * v.to(tl.float32)[None, :] + rest[:, None] * old_v.to(tl.float32)[None, :]
        weight = share + rest
    else:
        past = tl.arange(0, SPAN)
        inside = past < at
        where = past[:, None] * D + half[None, :]
        past_lo = tl.load(keys + where, mask=inside[:, None], other=0.0).to(tl.float32)
        past_hi = tl.load(keys + where + HALF, mask=inside[:, None], other=0.0).to(tl.float32)
        past_v = tl.load(values + past[:, None] * D + whole[None, :], mask=inside[:, None], other=0.0).to(tl.float32)
        scores = tl.sum(q_lo[:, None, :] * past_lo[None, :, :], 2) + tl.sum(q_hi[:, None, :] * past_hi[None, :, :], 2)
        scores = tl.where(inside[None, :], scores * scale, float("-inf"))  # [G, SPAN]
        top = tl.maximum(score, tl.max(scores, 1))
        share, shares = tl.exp(score - top), tl.exp(scores - top[:, None])
        weight = share + tl.sum(shares, 1)
        mixed = share[:, None] * v.to(tl.float32)[None, :] + tl.sum(shares[:, :, None] * past_v[None, :, :], 1)
    target = out_ptr + line * KV * G * D + (head * G + group)[:, None] * D + whole[None, :]
    tl.store(target, (mixed / weight[:, None]).to(out_ptr.dtype.element_ty))


class PastScratch:
    """Partial sums of the talker's attention, for R rows; each launch leaves the tickets at zero."""

    def __init__(self, rows: int, stack: StackWeights, device: torch.device) -> None:
        config = stack.config
        group = config.heads // config.kv_heads
        self.sums = torch.empty(rows * config.kv_heads * SPLITS * group * config.head_dim, device=device)
        self.stats = torch.empty(rows * config.kv_heads * SPLITS * 2 * group, device=device)
        self.tickets = torch.zeros(rows * config.kv_heads, dtype=torch.int32, device=device)


def attend_past(
    qkv: Tensor,
    stack: StackWeights,
    layer: int,
    cache: KVCache,
    *,
    position: Tensor,
    angles: tuple[Tensor, Tensor],
    scratch: PastScratch,
    out: Tensor,
    overlap: int = 0,
) -> None:
    """One new position a row over the row's past; see `FrameOps.attend_past`. `angles`: tables [S, D]."""
    config, data = stack.config, cache.data[layer]
    extra: dict[str, object] = {"launch_pdl": True} if overlap else {}
    _past[(qkv.shape[0], config.kv_heads, SPLITS)](
        qkv, data[0], data[1], position, angles[0], angles[1], stack.layers[layer].qk_norm, out,
        scratch.sums, scratch.stats, scratch.tickets,
        cache.positions, data.stride(1), data.stride(2), config.eps, config.head_dim**-0.5,
        KV=config.kv_heads, G=config.heads // config.kv_heads, D=config.head_dim, BLOCK=BLOCK, SPLITS=SPLITS,
        OVERLAP=overlap, num_warps=4, **extra,
    )  # fmt: skip


def attend_frame(
    qkv: Tensor,
    stack: StackWeights,
    layer: int,
    cache: KVCache,
    *,
    angles: tuple[Tensor, Tensor],
    start: int,
    width: int,
    out: Tensor,
    overlap: int = 0,
) -> None:
    """Positions start..start+width-1 of every row within a frame (width 1 or 2); see `FrameOps.attend_frame`."""
    assert width in {1, 2}
    config, data = stack.config, cache.data[layer]
    count = qkv.shape[0] // width
    extra: dict[str, object] = {"launch_pdl": True} if overlap else {}
    _frame[(count, config.kv_heads)](
        qkv, data[0], data[1], angles[0], angles[1], stack.layers[layer].qk_norm, out,
        count, start, data.stride(1), data.stride(2), config.eps, config.head_dim**-0.5,
        KV=config.kv_heads, G=config.heads // config.kv_heads, D=config.head_dim,
        SPAN=triton.next_power_of_2(cache.positions - 1), WIDTH=width, OVERLAP=overlap, num_warps=4, **extra,
    )  # fmt: skip
