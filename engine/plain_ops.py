"""The operations of a frame in plain torch: what runs on a CPU, and the twin that every fused kernel is tested against.

Written for few operator calls, since on a CPU with a small model the calls cost more than the arithmetic. Norms,
rotation, softmax and draws are FP32 whatever the weights' type.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import RESERVED_CODEC_IDS
from engine.frame_ops import Past, Residual
from engine.frame_weights import FrameWeights, Matrix, StackWeights
from engine.kv import KVCache
from engine.layers import Rotary
from engine.rows import Rows
from engine.sampling import NEVER, draw, penalise

MIN_TOKENS = 2  # end of speech is impossible for the first two codebook-0 draws


class PlainOps:
    """A `FrameOps` of torch operators."""

    def project(self, x: Residual, matrix: Matrix, eps: float) -> Tensor:
        return apply(matrix, x.ready)

    def logits(self, x: Residual, matrix: Matrix, eps: float) -> Tensor:
        return apply(matrix, x.ready).float()

    def gated(self, x: Residual, matrix: Matrix, eps: float) -> Tensor:
        gate, up = apply(matrix, x.ready).chunk(2, dim=-1)
        return F.silu(gate) * up

    def extend(self, x: Residual, y: Tensor, matrix: Matrix, *, gain: Tensor, eps: float) -> Residual:
        return residual(x.wide + apply(matrix, y), gain, eps)

    def attend_frame(
        self, qkv: Tensor, stack: StackWeights, layer: int, cache: KVCache, rotary: Rotary, *, start: int, width: int
    ) -> Tensor:
        count, stop, config = qkv.shape[0] // width, start + width, stack.config
        heads = qkv.view(width, count, -1, config.head_dim)
        cos, sin = rotary.signed(slice(start, stop))  # [T, D]
        turned = _turn(heads, stack, layer, cos[:, None, None], sin[:, None, None])  # [T, B, H + H_kv, D]
        data = cache.data[layer]  # [2, R, H_kv, S, D]
        data[0, :count, :, start:stop] = turned[:, :, config.heads :].permute(1, 2, 0, 3)
        data[1, :count, :, start:stop] = heads[:, :, config.heads + config.kv_heads :].permute(1, 2, 0, 3)
        mixed = F.scaled_dot_product_attention(
            turned[:, :, : config.heads].permute(1, 2, 0, 3), data[0, :count, :, :stop], data[1, :count, :, :stop],
            is_causal=width > 1, enable_gqa=config.heads != config.kv_heads,
        )  # fmt: skip
        return mixed.permute(2, 0, 1, 3).reshape(width * count, -1)

    def past(self, rows: Rows, count: int, rotary: Rotary, *, span: int) -> Past:
        at = rows.position[:count].clamp(
            max=rows.cache.positions - 1
        )  # a complete row computes on, at its last position
        cos, sin = rotary.signed(at)  # [B, D]
        reach = torch.arange(span, device=at.device) <= at[:, None]
        return Past(position=at, cos=cos, sin=sin, mask=reach[:, None, None])

    def attend_past(self, qkv: Tensor, stack: StackWeights, layer: int, cache: KVCache, past: Past) -> Tensor:
        count, config = qkv.shape[0], stack.config
        heads = qkv.view(count, -1, config.head_dim)
        turned = _turn(heads, stack, layer, past.cos[:, None], past.sin[:, None])  # [B, H + H_kv, D]
        data, index = cache.data[layer], torch.arange(count, device=qkv.device)
        data[0, index, :, past.position] = turned[:, config.heads :]
        data[1, index, :, past.position] = heads[:, config.heads + config.kv_heads :]
        assert past.mask is not None
        span = past.mask.shape[-1]
        mixed = F.scaled_dot_product_attention(
            turned[:, : config.heads, None], data[0, :count, :, :span], data[1, :count, :, :span],
            attn_mask=past.mask, enable_gqa=config.heads != config.kv_heads,
        )  # fmt: skip
        return mixed.reshape(count, -1)

    def first_inputs(self, weights: FrameWeights, hidden: Tensor, code0: Tensor) -> Residual:
        entered = hidden if weights.projection is None else apply(weights.projection, hidden)
        stack = weights.predictor
        return residual(torch.cat((entered, weights.tables[0][code0])).float(), stack.first_gain, stack.config.eps)

    def choose(
        self, logits: Tensor, rows: Rows, codes: Tensor, codebook: int, weights: FrameWeights
    ) -> Residual | None:
        count = logits.shape[0]
        frame = rows.frame[:count]
        index = rows.index[:count]
        chosen = draw(logits, rows.predictor_sampling.first(count), rows.uniform[index, frame, codebook])
        codes[:, codebook] = chosen
        if codebook < len(weights.tables):
            stack = weights.predictor
            return residual(weights.tables[codebook][chosen].float(), stack.first_gain, stack.config.eps)
        codes[:, 0] = rows.code0[:count]
        rows.codes[index, frame] = codes
        return None

    def frame_input(self, weights: FrameWeights, rows: Rows, codes: Tensor, pad_row: Tensor) -> Residual:
        count = codes.shape[0]
        books = torch.arange(weights.rest.shape[0], device=codes.device)
        total = weights.rest[books, codes[:, 1:]].sum(dim=1, dtype=torch.float32)
        total = total + weights.codec_embedding[codes[:, 0]] + _next_text(rows, count, pad_row)
        return residual(total, weights.talker.first_gain, weights.talker.config.eps)

    def commit(self, logits: Tensor, x: Residual, stack: StackWeights, rows: Rows, eos: int) -> Tensor:
        count = logits.shape[0]
        live, moved = slice(0, count), rows.advance[:count]
        code0 = draw_code0(logits, rows, live, rows.frame[live] + 1, eos)
        rows.hidden[live] = torch.where(moved[:, None], x.ready, rows.hidden[live])
        rows.code0[live] = torch.where(moved, code0, rows.code0[live])
        rows.seen[rows.index[live], code0] |= moved
        rows.position[live] += moved
        rows.frame[live] += moved
        return code0


def draw_code0(logits: Tensor, rows: Rows, live: slice, frame: Tensor, eos: int) -> Tensor:
    """Codebook 0 [B] of frame number `frame` [B] for the rows `live` from FP32 logits [B, V]: penalty, suppression,
    draw.
    """
    logits = penalise(logits, rows.seen[live], rows.penalty[live])
    never = torch.zeros_like(logits[0], dtype=torch.bool)
    never[-RESERVED_CODEC_IDS:] = True
    never[eos] = False
    logits = logits.masked_fill(never, NEVER)
    logits[:, eos] = logits[:, eos].masked_fill(frame < MIN_TOKENS, NEVER)
    uniform = rows.uniform[rows.index[live], frame, 0]
    return draw(logits, rows.talker_sampling.rows(live), uniform)


def apply(matrix: Matrix, x: Tensor) -> Tensor:
    """x [B, K] through the matrix, in x's type; a packed weight is dequantised by the scale of its output channel."""
    if matrix.packed is None or matrix.scale is None:
        return F.linear(x, matrix.weight, matrix.bias)
    product = F.linear(x, matrix.packed.to(x.dtype)).float() * matrix.scale
    return (product if matrix.bias is None else product + matrix.bias).to(x.dtype)


def residual(wide: Tensor, gain: Tensor, eps: float) -> Residual:
    """An FP32 stream [B, C], ready for an RMSNorm with `gain` (computed in FP32, in the gain's type)."""
    return Residual(wide=wide, ready=(_normed(wide, eps) * gain).to(gain.dtype))


def _turn(heads: Tensor, stack: StackWeights, layer: int, cos: Tensor, sin: Tensor) -> Tensor:
    """Normalised and rotated queries and keys [..., H + H_kv, D] of joined heads [..., H + 2 H_kv, D]."""
    config, gains = stack.config, stack.layers[layer].qk_norm
    normed = _normed(heads[..., : config.heads + config.kv_heads, :].float(), config.eps)
    normed = (normed * gains).to(heads.dtype).float()
    return torch.addcmul(normed * cos, normed.roll(config.head_dim // 2, dims=-1), sin).to(heads.dtype)


def _normed(x: Tensor, eps: float) -> Tensor:
    """x [..., C] FP32 over its root mean square, as sqrt(C) x / hypot(|x|, sqrt(C eps)): few operator calls, which is what a CPU pays for."""
    root = x.shape[-1] ** 0.5
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x.mul(root).div_(torch.hypot(length, length.new_full((), root * eps**0.5)))


def _next_text(rows: Rows, count: int, pad_row: Tensor) -> Tensor:
    """The text row [B or 1, C] that joins this frame: the next trailing row, or tts_pad."""
    if rows.limits.trailing == 0:
        return pad_row
    frame = rows.frame[:count]
    trailing = rows.trailing[rows.index[:count], frame.clamp(max=rows.limits.trailing - 1)]
    return torch.where((frame < rows.trailing_length[:count])[:, None], trailing, pad_row)
