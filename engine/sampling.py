"""From logits to codes: penalty, temperature, top-k, top-p, softmax, draw; in FP32, each row by its own settings.

Every operation works on a row alone, so a row's draw does not depend on its place or on the batch. A draw inverts the
cumulative distribution at one uniform number. The end-of-speech id passes through the same filters as every other id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.contract import StageSampling

NEVER = float("-inf")


@dataclass(frozen=True, kw_only=True)
class StageRows:
    """Settings of one stage for B rows, each tensor [B]; the plain fields say which filters any row needs."""

    temperature: Tensor
    top_k: Tensor
    top_p: Tensor
    greedy: Tensor
    widest_k: int
    any_unlimited: bool
    any_nucleus: bool
    any_greedy: bool
    all_greedy: bool


class StageTable:
    """Settings of one stage for R rows in static tensors, with a host copy that decides which filters run."""

    def __init__(self, rows: int, device: torch.device) -> None:
        self._host = [StageSampling() for _ in range(rows)]
        self._numbers = torch.zeros(4, rows, device=device)  # temperature, top_k, top_p, greedy
        self._cached: dict[tuple[int, int], StageRows] = {}

    @property
    def numbers(self) -> Tensor:
        """Temperature, top-k, top-p and 1 for greedy, of every row: [4, R] FP32."""
        return self._numbers

    def write(self, row: int, stage: StageSampling) -> None:
        self._cached.clear()
        self._host[row] = stage
        self._numbers[:, row] = torch.tensor([stage.temperature, stage.top_k, stage.top_p, stage.greedy])

    def move(self, source: int, target: int) -> None:
        self._cached.clear()
        self._host[target] = self._host[source]
        self._numbers[:, target] = self._numbers[:, source]

    def first(self, count: int) -> StageRows:
        """The settings of rows 0..count-1."""
        return self.rows(slice(0, count))

    def rows(self, selected: slice) -> StageRows:
        """The settings of the selected rows; worked out once, since a frame asks sixteen times."""
        key = (selected.start, selected.stop)
        if key not in self._cached:
            self._cached[key] = self._gather(selected)
        return self._cached[key]

    def _gather(self, selected: slice) -> StageRows:
        temperature, top_k, top_p, greedy = self._numbers[:, selected]
        host: Sequence[StageSampling] = self._host[selected]
        return StageRows(
            temperature=temperature,
            top_k=top_k.to(torch.int64),
            top_p=top_p,
            greedy=greedy > 0,
            widest_k=max(stage.top_k for stage in host),
            any_unlimited=any(stage.top_k == 0 for stage in host),
            any_nucleus=any(stage.top_p < 1.0 for stage in host),
            any_greedy=any(stage.greedy for stage in host),
            all_greedy=all(stage.greedy for stage in host),
        )


def penalise(logits: Tensor, seen: Tensor, penalty: Tensor) -> Tensor:
    """Repetition penalty on logits [B, V], once for each id with seen [B, V], strength penalty [B]."""
    strength = penalty[:, None]
    return torch.where(seen, torch.where(logits > 0, logits / strength, logits * strength), logits)


def draw(logits: Tensor, rows: StageRows, uniform: Tensor) -> Tensor:
    """Choose one id a row from logits [B, V] (FP32) with uniform numbers [B] in [0, 1). Returns int64 [B]."""
    if rows.all_greedy:
        return logits.argmax(dim=-1)
    scaled = logits / rows.temperature[:, None]
    if rows.widest_k:
        scaled = _keep_top_k(scaled, rows)
    if rows.any_nucleus:
        scaled = _keep_top_p(scaled, rows.top_p)
    chosen = _invert(torch.softmax(scaled, dim=-1), uniform)
    return torch.where(rows.greedy, logits.argmax(dim=-1), chosen) if rows.any_greedy else chosen


def _keep_top_k(logits: Tensor, rows: StageRows) -> Tensor:
    """Keep the k largest of each row, ties with the k-th included; k = 0 keeps all."""
    best = logits.topk(min(rows.widest_k, logits.shape[-1]), dim=-1).values  # [B, K], descending
    threshold = best.gather(1, (rows.top_k - 1).clamp(0, best.shape[1] - 1)[:, None])
    if rows.any_unlimited:
        threshold = threshold.masked_fill(rows.top_k[:, None] == 0, NEVER)
    return logits.masked_fill(logits < threshold, NEVER)


def _keep_top_p(logits: Tensor, top_p: Tensor) -> Tensor:
    """Keep the smallest set of most probable ids whose mass reaches top_p; at least one."""
    ordered, order = logits.sort(dim=-1)
    below = ordered.softmax(dim=-1).cumsum(dim=-1) <= (1.0 - top_p)[:, None]
    below[:, -1] = False
    drop = torch.zeros_like(below).scatter(1, order, below)
    return logits.masked_fill(drop & (top_p < 1.0)[:, None], NEVER)


def _invert(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """The id [B] at which the cumulative probability [B, V] first exceeds the uniform number [B]."""
    cumulative = probabilities.cumsum(dim=-1)
    total = cumulative[:, -1:].contiguous()
    chosen = torch.searchsorted(cumulative, uniform[:, None] * total, right=True)
    last = torch.searchsorted(cumulative, total)  # rounding may not lead beyond the last possible id
    last.clamp_(max=probabilities.shape[-1] - 1)  # nor NaN beyond the vocabulary
    return torch.minimum(chosen, last)[:, 0]
