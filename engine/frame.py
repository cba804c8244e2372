"""One frame of all rows, written once over the operations of `engine.frame_ops`.

Fifteen predictor passes with a draw after each, the sum of the frame's embeddings, one talker step, a draw. Nothing here reads a value
back, so on an accelerator the whole call is captured in a graph.
"""

from __future__ import annotations

from torch import Tensor

from engine.frame_ops import FrameOps, Residual
from engine.frame_weights import FrameWeights, LayerWeights
from engine.layers import Rotary
from engine.rows import Rows


class FrameProgram:
    """A frame step over one model's weights and one batch's rows."""

    def __init__(
        self,
        *,
        weights: FrameWeights,
        rows: Rows,
        ops: FrameOps,
        rotary: Rotary,
        predictor_rotary: Rotary,
        pad_row: Tensor,
        eos: int,
    ) -> None:
        self._weights, self._rows, self._ops = weights, rows, ops
        self._rotary, self._predictor_rotary = rotary, predictor_rotary
        self._pad_row, self._eos = pad_row, eos

    def __call__(self, count: int, *, span: int) -> Tensor:
        """Advance rows 0..count-1 as far as `rows.advance` allows; `span` bounds the cache positions in use.

        Returns:
            Codebook 0 of the next frame [count].
        """
        codes = self._predict(count)
        x = self._ops.frame_input(self._weights, self._rows, codes, self._pad_row)
        return self._talk(x, count, span)

    def _predict(self, count: int) -> Tensor:
        """The frame's 16 codes [count, 16]."""
        ops, rows, weights = self._ops, self._rows, self._weights
        stack = weights.predictor
        codes = rows.frame_codes[:count]
        x = ops.first_inputs(weights, rows.hidden[:count], rows.code0[:count])  # [2 B, C]
        start, groups = 0, codes.shape[1]
        for codebook in range(1, groups):
            width = 2 if codebook == 1 else 1
            for index, layer in enumerate(stack.layers):
                qkv = ops.project(x, layer.input_norm, stack.config.eps, layer.qkv)
                mixed = ops.attend_frame(
                    qkv, stack, index, rows.predictor_cache, self._predictor_rotary, start=start, width=width
                )
                x = self._close_layer(x, mixed, layer, stack.config.eps)
            start += width
            logits = ops.logits(x.last(count), stack.norm, stack.config.eps, weights.heads[codebook - 1])
            table = weights.tables[codebook] if codebook + 1 < groups else None
            following = ops.choose(logits, rows, codes, codebook, table)
            x = following or x
        return codes

    def _talk(self, x: Residual, count: int, span: int) -> Tensor:
        ops, rows, stack = self._ops, self._rows, self._weights.talker
        past = ops.past(rows, count, self._rotary, span=span)
        for index, layer in enumerate(stack.layers):
            qkv = ops.project(x, layer.input_norm, stack.config.eps, layer.qkv)
            mixed = ops.attend_past(qkv, stack, index, rows.cache, past)
            x = self._close_layer(x, mixed, layer, stack.config.eps)
        logits = ops.logits(x, stack.norm, stack.config.eps, self._weights.codec_head)
        return ops.commit(logits, x, stack, rows, self._eos)

    def _close_layer(self, x: Residual, mixed: Tensor, layer: LayerWeights, eps: float) -> Residual:
        """Output projection and feed-forward, each with its residual."""
        x = self._ops.extend(x, mixed, layer.out)
        return self._ops.extend(x, self._ops.gated(x, layer.post_norm, eps, layer.gate_up), layer.down)
