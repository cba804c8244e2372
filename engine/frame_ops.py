"""The operations a frame is made of, as a protocol: plain torch on a CPU, fused kernels on an accelerator.

Every operation works on each row by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from engine.frame_weights import FrameWeights, Matrix, StackWeights
from engine.kv import KVCache
from engine.layers import Rotary
from engine.rows import Rows


@dataclass(frozen=True, kw_only=True)
class Residual:
    """The residual stream: `wide` [B, C] in FP32, and what the next matrix product reads of it.

    In plain torch `ready` is the stream after the next RMSNorm, in the weights' type. Kernels leave its scalar factor
    to the reader: there `ready` is the stream times the norm's gain, and `squares` [B, parts] add up to the sum of the
    stream's squares.
    """

    wide: Tensor
    ready: Tensor
    squares: Tensor | None = None

    def last(self, count: int) -> Residual:
        """The last `count` rows."""
        squares = None if self.squares is None else self.squares[-count:]
        return Residual(wide=self.wide[-count:], ready=self.ready[-count:], squares=squares)


@dataclass(frozen=True, kw_only=True)
class Past:
    """Where each row stands: position [B], its signed rotary angles [B, D], and which cache positions it sees [B, 1, 1,
    S].

    Kernels read whole tables [S, D] of angles by position and need no mask."""

    position: Tensor
    cos: Tensor
    sin: Tensor
    mask: Tensor | None = None


class FrameOps(Protocol):
    """See `engine.plain_ops` for the reference implementation of every operation."""

    def project(self, x: Residual, matrix: Matrix, eps: float) -> Tensor:
        """The normed stream through the matrix: [B, N] in the weights' type."""
        ...

    def logits(self, x: Residual, matrix: Matrix, eps: float) -> Tensor:
        """The same in FP32."""
        ...

    def gated(self, x: Residual, matrix: Matrix, eps: float) -> Tensor:
        """The normed stream through a joined gate_up matrix, silu(gate) * up: [B, I]."""
        ...

    def extend(self, x: Residual, y: Tensor, matrix: Matrix, *, gain: Tensor, eps: float) -> Residual:
        """x plus the matrix applied to y [B, K], ready for a norm with `gain`."""
        ...

    def attend_frame(
        self, qkv: Tensor, stack: StackWeights, layer: int, cache: KVCache, rotary: Rotary, *, start: int, width: int
    ) -> Tensor:
        """Predictor attention. qkv [width * B, (H + 2 H_kv) D], position-major, at positions start..start+width-1 of
        every row.

        Normalises and rotates queries and keys, writes the cache, attends causally. Returns [width * B, H D]."""
        ...

    def past(self, rows: Rows, count: int, rotary: Rotary, *, span: int) -> Past:
        """What `attend_past` needs of the step; `span` bounds the positions in use."""
        ...

    def attend_past(self, qkv: Tensor, stack: StackWeights, layer: int, cache: KVCache, past: Past) -> Tensor:
        """Talker attention of one new position a row, each row at its own position: [B, H D]."""
        ...

    def first_inputs(self, weights: FrameWeights, hidden: Tensor, code0: Tensor) -> Residual:
        """The predictor's first two inputs, position-major [2 B, C_predictor]: the talker's hidden state, and
        codebook 0.
        """
        ...

    def choose(
        self, logits: Tensor, rows: Rows, codes: Tensor, codebook: int, weights: FrameWeights
    ) -> Residual | None:
        """Draw `codebook` into codes[:, codebook] and rows.codes, and return its embedding as the predictor's next
        input; None after the last.
        """
        ...

    def frame_input(self, weights: FrameWeights, rows: Rows, codes: Tensor, pad_row: Tensor) -> Residual:
        """The talker's input: the sum of the frame's 16 embeddings and the next text row."""
        ...

    def commit(self, logits: Tensor, x: Residual, stack: StackWeights, rows: Rows, eos: int) -> Tensor:
        """Draw codebook 0 of the next frame [B] and make the step the state of the rows that advance."""
        ...
