"""One frame of all rows, written once over the operations of `engine.frame_ops`.

Fifteen predictor passes with a draw after each, the sum of the frame's embeddings, one talker step, a draw. Nothing
here reads a value back, so on an accelerator the whole call is captured in a graph.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from engine.frame_ops import FrameOps, Residual
from engine.frame_weights import FrameWeights, StackWeights
from engine.layers import Rotary
from engine.rows import Rows

LOST = -1  # instead of a code


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
            Codebook 0 of the next frame [count], `LOST` for a row whose state has become NaN or infinite.
        """
        codes, last_logits = self._predict(count)
        x = self._ops.frame_input(self._weights, self._rows, codes, self._pad_row)
        code0 = self._talk(x, count, span)
        health = self._rows.hidden[:count].sum(-1) + last_logits.sum(-1)  # what is lost in a pass stays so to its end
        return torch.where(health.isfinite(), code0, LOST)

    def _predict(self, count: int) -> tuple[Tensor, Tensor]:
        """The frame's 16 codes [count, 16] and the logits of the last [count, V]."""
        ops, rows, weights = self._ops, self._rows, self._weights
        stack = weights.predictor
        codes = rows.frame_codes[:count]
        x = ops.first_inputs(weights, rows.hidden[:count], rows.code0[:count])  # [2 B, C]
        start = 0
        for codebook, head in enumerate(weights.heads, start=1):
            width = 2 if codebook == 1 else 1

            def attend(qkv: Tensor, layer: int, start: int = start, width: int = width) -> Tensor:
                cache, rotary = rows.predictor_cache, self._predictor_rotary
                return ops.attend_frame(qkv, stack, layer, cache, rotary, start=start, width=width)

            x = self._run(stack, x, attend)
            start += width
            logits = ops.logits(x.last(count), head, stack.config.eps)
            x = ops.choose(logits, rows, codes, codebook, weights) or x
        return codes, logits

    def _talk(self, x: Residual, count: int, span: int) -> Tensor:
        ops, rows, stack = self._ops, self._rows, self._weights.talker
        past = ops.past(rows, count, self._rotary, span=span)
        x = self._run(stack, x, lambda qkv, layer: ops.attend_past(qkv, stack, layer, rows.cache, past))
        logits = ops.logits(x, self._weights.codec_head, stack.config.eps)
        return ops.commit(logits, x, stack, rows, self._eos)

    def _run(self, stack: StackWeights, x: Residual, attend: Callable[[Tensor, int], Tensor]) -> Residual:
        """All layers of a stack; the result is ready for the final norm's readers."""
        ops, eps = self._ops, stack.config.eps
        for index, layer in enumerate(stack.layers):
            mixed = attend(ops.project(x, layer.qkv, eps), index)
            x = ops.extend(x, mixed, layer.out, gain=layer.post_norm, eps=eps)
            fed = ops.gated(x, layer.gate_up, eps)
            x = ops.extend(x, fed, layer.down, gain=stack.gain_after(index), eps=eps)
        return x
