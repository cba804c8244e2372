"""Key/value storage behind one method, `extend`, so that layers do not know who calls them.

A store takes the new keys and values of one layer and returns all that the queries may attend to, with the mask that
says which. Four uses: a whole sequence without memory (training, parity), prefill of one row, one decode step of many
rows at their own positions, and the predictor's short lockstep passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from engine.config import TransformerConfig


@dataclass(frozen=True, kw_only=True)
class Attended:
    """Keys and values [B, H_kv, S, D]; `mask` [B, 1, T, S] True where allowed, or None; `causal`: a whole sequence."""

    keys: Tensor
    values: Tensor
    mask: Tensor | None = None
    causal: bool = False


class KVStore(Protocol):
    def extend(self, layer: int, keys: Tensor, values: Tensor) -> Attended:
        """Add keys and values [B, H_kv, T, D] of `layer` and return what the T queries attend to."""
        ...


class NoCache:
    """A whole sequence from position 0, causal, nothing kept."""

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> Attended:
        return Attended(keys=keys, values=values, causal=keys.shape[2] > 1)


class KVCache:
    """Static storage [L, 2, R, H_kv, S, D] for R rows of S positions."""

    def __init__(
        self, config: TransformerConfig, *, rows: int, positions: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        shape = (config.layers, 2, rows, config.kv_heads, positions, config.head_dim)
        self.data = torch.zeros(shape, device=device, dtype=dtype)

    @property
    def positions(self) -> int:
        return self.data.shape[4]

    def move(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` positions of row `source` over row `target`."""
        self.data[:, :, target, :, :length] = self.data[:, :, source, :, :length]


class PrefillStore:
    """Prefill of one row from position 0: writes the cache, attends causally within the prompt."""

    def __init__(self, cache: KVCache, row: int) -> None:
        self._cache, self._row = cache, row

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> Attended:
        length = keys.shape[2]
        self._cache.data[layer, 0, self._row, :, :length] = keys[0]
        self._cache.data[layer, 1, self._row, :, :length] = values[0]
        return Attended(keys=keys, values=values, causal=True)


class DecodeStore:
    """One new position for each of the rows 0..B-1, each at its own position.

    `span` bounds the positions that are read; on a CPU it is the longest row, in a graph the whole cache.
    """

    def __init__(self, cache: KVCache, positions: Tensor, span: int) -> None:
        self._cache, self._span = cache, span
        self._rows = torch.arange(positions.shape[0], device=positions.device)
        self._positions = positions  # [B]
        reach = torch.arange(span, device=positions.device)
        self._mask = (reach <= positions[:, None])[:, None, None, :]  # [B, 1, 1, S]

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> Attended:
        rows = keys.shape[0]
        all_keys, all_values = self._cache.data[layer, 0], self._cache.data[layer, 1]
        all_keys[self._rows, :, self._positions] = keys[:, :, 0]
        all_values[self._rows, :, self._positions] = values[:, :, 0]
        return Attended(
            keys=all_keys[:rows, :, : self._span], values=all_values[:rows, :, : self._span], mask=self._mask
        )


class LockstepStore:
    """All rows share one position: the predictor's passes within a frame. Nothing survives the frame."""

    def __init__(self, cache: KVCache, rows: int) -> None:
        self._cache, self._rows, self.length = cache, rows, 0

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> Attended:
        start, stop = self.length, self.length + keys.shape[2]
        data = self._cache.data[layer, :, : self._rows]  # [2, B, H_kv, S, D]
        data[0, :, :, start:stop] = keys
        data[1, :, :, start:stop] = values
        return Attended(keys=data[0, :, :, :stop], values=data[1, :, :, :stop], causal=keys.shape[2] > 1)

    def advance(self, count: int) -> None:
        self.length += count
