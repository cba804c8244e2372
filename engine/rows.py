"""The batch: everything that belongs to a row, in static tensors of R rows.

Active requests occupy rows 0..n-1, so every step works on prefix views and nothing is gathered. When a request ends
the last row moves into its place.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.config import CodecConfig, TalkerConfig
from engine.contract import Sampling
from engine.kv import KVCache
from engine.randomness import uniforms
from engine.sampling import StageTable


@dataclass(frozen=True, kw_only=True)
class RowLimits:
    """How much a row may hold: R rows, S cache positions, F frames, text rows that join the frames (streaming text).

    A complete request may wait on its row for its reader while other rows step; the step computes for it as well. So
    prompt and frames use at most S - 1 positions, and the frame after the last has a place in the buffers.
    """

    rows: int
    positions: int
    frames: int
    trailing: int = 0


class Rows:
    """Per-row state of R requests."""

    def __init__(
        self, config: TalkerConfig, codec: CodecConfig, limits: RowLimits, *, device: torch.device, dtype: torch.dtype
    ) -> None:
        count, width, groups = limits.rows, config.transformer.hidden, config.code_groups
        self.limits = limits
        self.groups = groups
        self.cache = KVCache(config.transformer, rows=count, positions=limits.positions, device=device, dtype=dtype)
        self.predictor_cache = KVCache(
            config.predictor.transformer, rows=count, positions=groups + 1, device=device, dtype=dtype
        )
        self.position = torch.zeros(count, dtype=torch.int64, device=device)  # next cache position
        self.frame = torch.zeros(count, dtype=torch.int64, device=device)  # frames complete so far
        self.code0 = torch.zeros(count, dtype=torch.int64, device=device)  # codebook 0 of the frame in work
        self.hidden = torch.zeros(count, width, device=device, dtype=dtype)  # talker state that predicts it
        self.seen = torch.zeros(count, config.vocab, dtype=torch.bool, device=device)
        self.penalty = torch.ones(count, device=device)
        self.uniform = torch.zeros(count, limits.frames + 2, groups, device=device)
        self.codes = torch.zeros(count, limits.frames + 1, groups, dtype=torch.int64, device=device)
        self.trailing = torch.zeros(count, max(limits.trailing, 1), width, device=device, dtype=dtype)
        self.trailing_length = torch.zeros(count, dtype=torch.int64, device=device)
        self.talker_sampling = StageTable(count, device)
        self.predictor_sampling = StageTable(count, device)
        self.index = torch.arange(count, device=device)
        self.advance = torch.zeros(count, dtype=torch.bool, device=device)  # rows whose state the next step changes
        self.frame_codes = torch.zeros(count, groups, dtype=torch.int64, device=device)  # the frame in work
        self._length = [0] * count  # host copy of `position`

    @property
    def _moving(self) -> tuple[Tensor, ...]:
        return (
            self.position, self.frame, self.code0, self.hidden, self.seen, self.penalty, self.uniform,
            self.codes, self.trailing, self.trailing_length,
        )  # fmt: skip

    @property
    def bytes_per_row(self) -> int:
        """Memory that one row reserves, its key/value cache included."""
        static = sum(tensor[0].numel() * tensor.element_size() for tensor in self._moving)
        cache = self.cache.data
        return static + cache[:, :, 0].numel() * cache.element_size()

    def admit(self, row: int, *, seed: int, sampling: Sampling, prompt: int, trailing: Tensor) -> None:
        """Start a request on `row`: prompt length in positions, trailing text rows [N, C]."""
        numbers = uniforms(seed, frames=self.uniform.shape[1], code_groups=self.groups)
        self.uniform[row] = torch.from_numpy(numbers)
        self.position[row] = prompt
        self._length[row] = prompt
        self.frame[row] = 0
        self.seen[row] = False
        self.penalty[row] = sampling.repetition_penalty
        self.trailing[row, : trailing.shape[0]] = trailing
        self.trailing_length[row] = trailing.shape[0]
        self.talker_sampling.write(row, sampling.talker)
        self.predictor_sampling.write(row, sampling.predictor)

    def move(self, source: int, target: int) -> None:
        """Copy row `source` over row `target`, only as much of the cache as is in use."""
        for tensor in self._moving:
            tensor[target] = tensor[source]
        self.talker_sampling.move(source, target)
        self.predictor_sampling.move(source, target)
        self.cache.move(source, target, self._length[source])
        self._length[target] = self._length[source]

    def span(self, count: int) -> int:
        """Cache positions that the longest of rows 0..count-1 will have after one more step."""
        return max(self._length[:count]) + 1

    def note_step(self, advance: list[bool]) -> None:
        """Keep the host copy of the lengths in step with the device."""
        for row, moved in enumerate(advance):
            self._length[row] += moved
