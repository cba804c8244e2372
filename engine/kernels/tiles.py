"""Which launch shape a matrix product gets, by its size; measured choices, see docs/performance.md."""

from __future__ import annotations

from engine.frame_weights import Matrix
from engine.kernels.linear import LANES, WIDE, Tile, is_few

MANY_COLUMNS, SOME_COLUMNS = 4096, 2048


def tile_for(count: int, matrix: Matrix, *, gated: bool) -> Tile:
    """A tile for `count` rows through the matrix: few columns a program where there are few, so that every
    multiprocessor has one.
    """
    columns, inner = matrix.weight.shape
    outputs = columns // 2 if gated else columns
    if is_few(count, matrix):
        return Tile(columns=8, depth=_dividing(inner // (LANES * WIDE), 4), warps=4 if outputs > SOME_COLUMNS else 8)
    if gated:
        return _fit(inner, columns=32, depth=128, stages=4)
    if count > 16:
        return _fit(inner, columns=64 if outputs >= MANY_COLUMNS else 32 if outputs >= SOME_COLUMNS else 16, depth=256)
    if outputs >= MANY_COLUMNS:
        return _fit(inner, columns=16, depth=256, warps=2)
    return _fit(inner, columns=16 if outputs >= SOME_COLUMNS else 8, depth=512)


def _fit(inner: int, *, columns: int, depth: int, warps: int = 4, stages: int = 3) -> Tile:
    """The tile, with a step no deeper than the inner dimension."""
    while depth > max(inner, 16):
        depth //= 2
    return Tile(columns=columns, depth=depth, warps=warps, stages=stages)


def _dividing(total: int, most: int) -> int:
    """The largest power of two up to `most` that divides `total`."""
    while total % most:
        most //= 2
    return most
