"""What the streaming codec remembers of each utterance between two packets.

Modules reserve a slot in a `StateLayout` when they are built; a `CodecState` holds every slot of a number of rows in
one static tensor and serves a selection of rows, gathered once a packet and put back once. Everything is written in
place, so a captured graph can use it.
"""

from __future__ import annotations

from math import prod

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
    """The slots of R utterances in one tensor [R, total], and the number of frames [R] decoded so far.

    `select` gathers the rows that the next calls work on; their slots go back when `advance` closes the packet. Until
    then all rows are worked on in place.
    """

    def __init__(self, layout: StateLayout, *, rows: int, device: torch.device) -> None:
        self._shapes = list(layout.shapes)
        sizes = [prod(shape) for shape in self._shapes]
        self._starts = [sum(sizes[:slot]) for slot in range(len(sizes))]
        self._sizes = sizes
        self._whole = torch.zeros(rows, sum(sizes), device=device)
        self._frames = torch.zeros(rows, dtype=torch.int64, device=device)
        self._rows: Tensor | None = None
        self._work = self._whole

    @property
    def bytes_per_row(self) -> int:
        """Memory that one utterance's state takes."""
        return self._whole[0].numel() * self._whole.element_size() + self._frames.element_size()

    def select(self, rows: Tensor | None) -> None:
        """Work on rows [B] (int64 indices, distinct) in this order, or on all."""
        self._rows = rows
        self._work = self._whole if rows is None else self._whole.index_select(0, rows)

    def load(self, slot: int) -> Tensor:
        """The slot's buffer of the selected rows [B, *shape]."""
        start = self._starts[slot]
        return self._work[:, start : start + self._sizes[slot]].view(-1, *self._shapes[slot])

    def store(self, slot: int, value: Tensor) -> None:
        """Replace the slot's buffer of the selected rows by value [B, *shape]."""
        self.load(slot).copy_(value)

    def frames(self) -> Tensor:
        """Frames decoded so far [B] of the selected rows."""
        return self._frames if self._rows is None else self._frames.index_select(0, self._rows)

    def advance(self, count: int) -> None:
        """Close a packet: `count` more frames of the selected rows have been decoded."""
        if self._rows is None:
            self._frames.add_(count)
            return
        self._whole.index_copy_(0, self._rows, self._work)
        self._frames.index_add_(0, self._rows, torch.full_like(self._rows, count))

    def reset(self, row: int) -> None:
        """Put one row back to the beginning of an utterance."""
        self._whole[row].zero_()
        self._frames[row].zero_()

    def move(self, source: int, target: int) -> None:
        """Copy row `source` over row `target`."""
        self._whole[target].copy_(self._whole[source])
        self._frames[target].copy_(self._frames[source])
