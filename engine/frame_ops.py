"""The operations a frame is made of, as a protocol: plain torch on a CPU, fused kernels on an accelerator.

Every operation works on each row by itself. The residual stream is FP32 (`wide`) beside a copy in the weights' type (`narrow`) that the matrix
products read; where the weights are FP32 both are one tensor.
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
    """The residual stream [B, C] in FP32 and in the weights' type."""

    wide: Tensor
    narrow: Tensor

    def last(self, count: int) -> Residual:
        """The last `count` rows."""
        wide = self.wide[-count:]
        return Residual(wide=wide, narrow=wide if self.narrow is self.wide else self.narrow[-count:])


@dataclass(frozen=True, kw_only=True)
class Past:
    """Where each row stands: position [B], its signed rotary angles [B, D], and which cache positions it sees [B, 1, 1, S].

    Kernels read whole tables [S, D] of angles by position and need no mask."""

    position: Tensor
    cos: Tensor
    sin: Tensor
    mask: Tensor | None = None


class FrameOps(Protocol):
    """See `engine.plain_ops` for the reference implementation of every operation."""

    def project(self, x: Residual, gain: Tensor, eps: float, matrix: Matrix) -> Tensor:
        """RMSNorm of x, then the matrix: [B, N] in the weights' type."""
        ...

    def logits(self, x: Residual, gain: Tensor, eps: float, matrix: Matrix) -> Tensor:
        """The same in FP32."""
        ...

    def gated(self, x: Residual, gain: Tensor, eps: float, matrix: Matrix) -> Tensor:
        """RMSNorm of x, then silu(gate) * up of a joined gate_up matrix: [B, I]."""
        ...

    def extend(self, x: Residual, y: Tensor, matrix: Matrix) -> Residual:
        """x plus the matrix applied to y [B, K]."""
        ...

    def attend_frame(
        self, qkv: Tensor, stack: StackWeights, layer: int, cache: KVCache, rotary: Rotary, *, start: int, width: int
    ) -> Tensor:
        """Predictor attention. qkv [width * B, (H + 2 H_kv) D], position-major, at positions start..start+width-1 of every row.

        Normalises and rotates queries and keys, writes the cache, attends causally. Returns [width * B, H D]."""
        ...

    def past(self, rows: Rows, count: int, rotary: Rotary, *, span: int) -> Past:
        """What `attend_past` needs of the step; `span` bounds the positions in use."""
        ...

    def attend_past(self, qkv: Tensor, stack: StackWeights, layer: int, cache: KVCache, past: Past) -> Tensor:
        """Talker attention of one new position a row, each row at its own position: [B, H D]."""
        ...

    def first_inputs(self, weights: FrameWeights, hidden: Tensor, code0: Tensor) -> Residual:
        """The predictor's first two inputs, position-major [2 B, C_predictor]: the talker's hidden state, and codebook 0."""
        ...

    def choose(self, logits: Tensor, rows: Rows, codes: Tensor, codebook: int, table: Tensor | None) -> Residual | None:
        """Draw `codebook` into codes[:, codebook] and rows.codes; look its next input up in `table`."""
        ...

    def frame_input(self, weights: FrameWeights, rows: Rows, codes: Tensor, pad_row: Tensor) -> Residual:
        """The talker's input: the sum of the frame's 16 embeddings and the next text row."""
        ...

    def commit(self, logits: Tensor, x: Residual, stack: StackWeights, rows: Rows, eos: int) -> Tensor:
        """Draw codebook 0 of the next frame [B] and make the step the state of the rows that advance."""
        ...

