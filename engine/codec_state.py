"""What the streaming codec remembers of each utterance between two packets.

Modules reserve a slot in a `StateLayout` when they are built; a `CodecState` holds one static buffer a slot for a number of rows and
serves a selection of them. Buffers are read whole and written whole, in place, so a captured graph can use them.
"""

from __future__ import annotations

import torch
from torch import Tensor


class StateLayout:
    """The shapes, one utterance each, that a decoder's modules asked for; a slot is an index into them."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, ...]] = []

    def reserve(self, *shape: int) -> int:
        """Reserve a zero-initialised buffer of `shape` and return its slot."""
        self.shapes.append(shape)
        return len(self.shapes) - 1


class CodecState:
    """Buffers [R, *shape] a slot, and the number of frames [R] decoded so far.

    `select` names the rows that the next calls work on; until then all rows are selected.
    """

    def __init__(self, layout: StateLayout, *, rows: int, device: torch.device) -> None:
        self._buffers = [torch.zeros(rows, *shape, device=device) for shape in layout.shapes]
        self._frames = torch.zeros(rows, dtype=torch.int64, device=device)
        self._rows: Tensor | None = None

    @property
    def bytes_per_row(self) -> int:
        """Memory that one utterance's state takes."""
        return sum(buffer[0].numel() * buffer.element_size() for buffer in (*self._buffers, self._frames))

    def select(self, rows: Tensor | None) -> None:
        """Work on rows [B] (int64 indices, distinct) in this order, or on all."""
        self._rows = rows

    def load(self, slot: int) -> Tensor:
        """The slot's buffer of the selected rows [B, *shape]."""
        buffer = self._buffers[slot]
        return buffer if self._rows is None else buffer.index_select(0, self._rows)

    def store(self, slot: int, value: Tensor) -> None:
        """Replace the slot's buffer of the selected rows by value [B, *shape]."""
        if self._rows is None:
            self._buffers[slot].copy_(value)
        else:
            self._buffers[slot].index_copy_(0, self._rows, value)

    def frames(self) -> Tensor:
        """Frames decoded so far [B] of the selected rows."""
        return self._frames if self._rows is None else self._frames.index_select(0, self._rows)

    def advance(self, count: int) -> None:
        """Note that `count` more frames of the selected rows have been decoded."""
        if self._rows is None:
            self._frames.add_(count)
        else:
            self._frames.index_add_(0, self._rows, torch.full_like(self._rows, count))

    def reset(self, row: int) -> None:
        """Put one row back to the beginning of an utterance."""
        for buffer in (*self._buffers, self._frames):
            buffer[row].zero_()

    def move(self, source: int, target: int) -> None:
        """Copy row `source` over row `target`."""
        for buffer in (*self._buffers, self._frames):
            buffer[target].copy_(buffer[source])
