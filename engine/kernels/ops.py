"""The operations of a frame as fused kernels: a `FrameOps` for an accelerator.

Outputs are allocated as the step goes; under graph capture they come from the graph's own pool and cost nothing at replay.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.config import RESERVED_CODEC_IDS
from engine.frame_ops import Past, Residual
from engine.frame_weights import FrameWeights, Matrix, StackWeights
from engine.kernels import attention, embedding, sampling
from engine.kernels.linear import Tile, fresh, linear
from engine.kernels.tiles import tile_for
from engine.kv import KVCache
from engine.layers import Rotary
from engine.rows import Rows


class FusedOps:
    """A `FrameOps` of Triton kernels. `overlap`: let each kernel start while its predecessor ends (compute capability 9 and later)."""

    def __init__(self, weights: FrameWeights, rows: int, device: torch.device, *, overlap: bool) -> None:
        self._scratch = attention.PastScratch(rows, weights.talker, device)
        self._overlap = overlap

    def project(self, x: Residual, gain: Tensor, eps: float, matrix: Matrix) -> Tensor:
        out = x.narrow.new_empty(x.narrow.shape[0], matrix.weight.shape[0])
        linear(x.narrow, matrix, self._tile(x.narrow, matrix), out, gain=gain, eps=eps, overlap=self._overlap)
        return out

    def logits(self, x: Residual, gain: Tensor, eps: float, matrix: Matrix) -> Tensor:
        out = x.wide.new_empty(x.wide.shape[0], matrix.weight.shape[0])
        linear(x.narrow, matrix, self._tile(x.narrow, matrix), out, gain=gain, eps=eps, overlap=self._overlap)
        return out

    def gated(self, x: Residual, gain: Tensor, eps: float, matrix: Matrix) -> Tensor:
        out = x.narrow.new_empty(x.narrow.shape[0], matrix.weight.shape[0] // 2)
        tile = self._tile(x.narrow, matrix, gated=True)
        linear(x.narrow, matrix, tile, out, gain=gain, eps=eps, gated=True, overlap=self._overlap)
        return out

    def extend(self, x: Residual, y: Tensor, matrix: Matrix) -> Residual:
        out = fresh(*x.wide.shape, like=x.narrow)
        narrow = None if out.narrow is out.wide else out.narrow
        linear(y, matrix, self._tile(y, matrix), out.wide, old=x.wide, narrow=narrow, overlap=self._overlap)
        return out

    def attend_frame(
        self, qkv: Tensor, stack: StackWeights, layer: int, cache: KVCache, rotary: Rotary, *, start: int, width: int
    ) -> Tensor:
        out = qkv.new_empty(qkv.shape[0], stack.config.heads * stack.config.head_dim)
        attention.attend_frame(
            qkv, stack, layer, cache, angles=rotary.tables, start=start, width=width, out=out, overlap=self._overlap
        )
        return out

    def past(self, rows: Rows, count: int, rotary: Rotary, *, span: int) -> Past:
        cos, sin = rotary.tables
        return Past(position=rows.position[:count], cos=cos, sin=sin)

    def attend_past(self, qkv: Tensor, stack: StackWeights, layer: int, cache: KVCache, past: Past) -> Tensor:
        out = qkv.new_empty(qkv.shape[0], stack.config.heads * stack.config.head_dim)
        attention.attend_past(
            qkv, stack, layer, cache,
            position=past.position, angles=(past.cos, past.sin), scratch=self._scratch, out=out, overlap=self._overlap,
        )  # fmt: skip
        return out

    def first_inputs(self, weights: FrameWeights, hidden: Tensor, code0: Tensor) -> Residual:
        count, table = hidden.shape[0], weights.tables[0]
        out = fresh(2 * count, table.shape[1], like=hidden)
        top = Residual(wide=out.wide[:count], narrow=out.narrow[:count] if out.narrow is not out.wide else out.wide[:count])
        if weights.projection is None:
            out.wide[:count] = hidden
            out.narrow[:count] = hidden
        else:
            narrow = None if out.narrow is out.wide else top.narrow
            tile = self._tile(hidden, weights.projection)
            linear(hidden, weights.projection, tile, top.wide, narrow=narrow, overlap=self._overlap)
        embedding.look_up(code0, table, out.last(count), overlap=self._overlap)
        return out

    def choose(self, logits: Tensor, rows: Rows, codes: Tensor, codebook: int, table: Tensor | None) -> Residual | None:
        out = None if table is None else fresh(logits.shape[0], table.shape[1], like=table)
        sampling.choose(logits, rows, codes, codebook, table, out, overlap=self._overlap)
        return out

    def frame_input(self, weights: FrameWeights, rows: Rows, codes: Tensor, pad_row: Tensor) -> Residual:
        out = fresh(codes.shape[0], pad_row.shape[1], like=pad_row)
        embedding.frame_input(
            codes, weights.codec_embedding, weights.rest, pad_row, rows, out, overlap=self._overlap
        )
        return out

    def commit(self, logits: Tensor, x: Residual, stack: StackWeights, rows: Rows, eos: int) -> Tensor:
        count = logits.shape[0]
        out = torch.empty(count, dtype=torch.int64, device=logits.device)
        sampling.commit(
            logits, rows, rows.index[:count],
            reserved=logits.shape[1] - RESERVED_CODEC_IDS, eos=eos, step=(x.narrow, stack), out=out, overlap=self._overlap,
        )  # fmt: skip
        return out

    def _tile(self, x: Tensor, matrix: Matrix, *, gated: bool = False) -> Tile:
        return tile_for(x.shape[0], matrix, gated=gated)
