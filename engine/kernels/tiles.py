"""Which launch shape a matrix product gets, by its size; measured choices, see docs/performance.md."""

from __future__ import annotations

from engine.frame_weights import Matrix
from engine.kernels.linear import Tile

MULTIPROCESSORS = 132


def tile_for(count: int, matrix: Matrix, *, gated: bool) -> Tile:
    """A tile for `count` rows through the matrix. Columns a program: the most that still gives every multiprocessor a program."""
    columns, inner = matrix.weight.shape
    outputs = columns // 2 if gated else columns
    share = 32 if count > 32 else 16
    while share > 8 and outputs // share < MULTIPROCESSORS - 4:
        share //= 2
    depth = min(256 if matrix.scale is None else 512, inner)
    while depth & (depth - 1):
        depth &= depth - 1
    return Tile(columns=share, depth=max(depth, 16), warps=4, stages=4, ahead=0 if inner < 1024 else 1024)
