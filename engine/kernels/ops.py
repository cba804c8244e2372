"""The operations of a frame as fused kernels: a `FrameOps` for an accelerator.

Outputs are allocated as the step goes; under graph capture they come from the graph's own pool and cost nothing at
replay.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.config import RESERVED_CODEC_IDS
from engine.frame_ops import Past, Residual
from engine.frame_weights import FrameWeights, Matrix, StackWeights
from engine.kernels import attention, embedding, sampling
from engine.kernels.launch import ONE_BY_ONE, Launch
from engine.kernels.linear import Ahead, Stream, ahead_of, fresh, linear, programs
from engine.kernels.tiles import tile_for
from engine.kv import KVCache
from engine.layers import Rotary
from engine.rows import Rows


class FusedOps:
    """A `FrameOps` of Triton kernels."""

    def __init__(self, weights: FrameWeights, rows: int, device: torch.device, *, launch: Launch = ONE_BY_ONE) -> None:
        self._scratch = attention.PastScratch(rows, weights.talker, device)
        self._overlap, self._ahead_bytes = launch.overlap, launch.ahead_bytes
        self._order = reading_order(weights)
        self._place = 0

    def project(self, x: Residual, matrix: Matrix, eps: float) -> Tensor:
        return self._read(x, matrix, eps, x.ready.new_empty(x.ready.shape[0], matrix.weight.shape[0]))

    def logits(self, x: Residual, matrix: Matrix, eps: float) -> Tensor:
        return self._read(x, matrix, eps, x.wide.new_empty(x.wide.shape[0], matrix.weight.shape[0]))

    def gated(self, x: Residual, matrix: Matrix, eps: float) -> Tensor:
        out = x.ready.new_empty(x.ready.shape[0], matrix.weight.shape[0] // 2)
        return self._read(x, matrix, eps, out, gated=True)

    def extend(self, x: Residual, y: Tensor, matrix: Matrix, *, gain: Tensor, eps: float) -> Residual:
        return self._write(y, matrix, gain, old=x.wide)

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
        count, table, gain = hidden.shape[0], weights.tables[0], weights.predictor.first_gain
        entered = hidden
        if weights.projection is not None:
            entered = hidden.new_empty(count, table.shape[1])
            tile = tile_for(count, weights.projection, gated=False)
            linear(hidden, weights.projection, tile, entered, overlap=self._overlap)
        self._place = 0
        out = fresh(2 * count, table.shape[1], 1, like=hidden)
        assert out.squares is not None
        top = Residual(wide=out.wide[:count], ready=out.ready[:count], squares=out.squares[:count])
        embedding.as_stream(entered, None, gain, top, overlap=self._overlap)
        embedding.as_stream(table, code0, gain, out.last(count), overlap=self._overlap)
        return out

    def choose(
        self, logits: Tensor, rows: Rows, codes: Tensor, codebook: int, weights: FrameWeights
    ) -> Residual | None:
        following = out = None
        if codebook < len(weights.tables):
            table = weights.tables[codebook]
            out = fresh(logits.shape[0], table.shape[1], 1, like=table)
            following = sampling.Following(table=table, gain=weights.predictor.first_gain, out=out)
        sampling.choose(logits, rows, codes, codebook, following, overlap=self._overlap)
        return out

    def frame_input(self, weights: FrameWeights, rows: Rows, codes: Tensor, pad_row: Tensor) -> Residual:
        count, width = codes.shape[0], pad_row.shape[1]
        out = fresh(count, width, -(-width // embedding.FRAME_BLOCK), like=pad_row)
        embedding.frame_input(
            codes,
            weights.codec_embedding,
            weights.rest,
            pad_row,
            rows,
            weights.talker.first_gain,
            out,
            overlap=self._overlap,
        )
        return out

    def commit(self, logits: Tensor, x: Residual, stack: StackWeights, rows: Rows, eos: int) -> Tensor:
        count = logits.shape[0]
        out = torch.empty(count, dtype=torch.int64, device=logits.device)
        sampling.commit(
            logits, rows, rows.index[:count],
            reserved=logits.shape[1] - RESERVED_CODEC_IDS, eos=eos, step=(x.wide, stack), out=out, overlap=self._overlap,
        )  # fmt: skip
        return out

    def _read(self, x: Residual, matrix: Matrix, eps: float, out: Tensor, *, gated: bool = False) -> Tensor:
        """A product of the normed stream."""
        tile = tile_for(x.ready.shape[0], matrix, gated=gated)
        ahead = self._ahead(x.ready.shape[0], matrix)
        linear(x.ready, matrix, tile, out, squares=x.squares, eps=eps, gated=gated, overlap=self._overlap, ahead=ahead)
        return out

    def _write(self, y: Tensor, matrix: Matrix, gain: Tensor, old: Tensor) -> Residual:
        """A product that becomes the stream."""
        tile = tile_for(y.shape[0], matrix, gated=False)
        count, width = old.shape
        out = fresh(count, width, programs(width, tile), like=y)
        assert out.squares is not None
        stream = Stream(gain=gain, ready=out.ready, squares=out.squares)
        ahead = self._ahead(count, matrix)
        linear(y, matrix, tile, out.wide, old=old, stream=stream, overlap=self._overlap, ahead=ahead)
        return out

    def _ahead(self, count: int, matrix: Matrix) -> Ahead | None:
        """What the product after this one reads, as far as this one is where the frame's order has it."""
        if self._order[self._place] is not matrix:
            return None
        self._place = (self._place + 1) % len(self._order)
        return ahead_of(self._order[self._place], count, limit=self._ahead_bytes)


def reading_order(weights: FrameWeights) -> list[Matrix]:
    """The matrices of a frame's layers and heads in the order in which it reads them, from the first predictor pass."""
    order = []
    for head in weights.heads:
        order += [*_matrices(weights.predictor), head]
    return [*order, *_matrices(weights.talker), weights.codec_head]


def _matrices(stack: StackWeights) -> list[Matrix]:
    return [matrix for layer in stack.layers for matrix in (layer.qkv, layer.out, layer.gate_up, layer.down)]
