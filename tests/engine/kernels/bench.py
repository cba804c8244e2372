"""A tiny model's weights and rows, poisoned outputs, and rows in the middle of their utterances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from engine.checkpoint import LoadedModel, load_model
from engine.contract import Sampling, StageSampling
from engine.frame_weights import FrameWeights, frame_weights
from engine.layers import Rotary
from engine.rows import RowLimits, Rows
from tests.engine.tiny_checkpoint import TinyShape, write_tiny_checkpoint


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A model with its rows."""

    model: LoadedModel
    weights: FrameWeights
    rows: Rows
    rotary: Rotary
    predictor_rotary: Rotary


def load_tiny(directory: Path, shape: TinyShape | None = None) -> LoadedModel:
    return load_model(write_tiny_checkpoint(directory, shape), device=torch.device("cpu"), dtype=torch.float32)


def make_bench(model: LoadedModel, *, rows: int = 3, trailing: int = 4, positions: int = 160) -> Bench:
    config, cpu = model.talker.config, model.device
    limits = RowLimits(rows=rows, positions=positions, frames=40, trailing=trailing)
    batch = Rows(config, model.codec.config, limits, device=cpu, dtype=model.dtype)
    return Bench(
        model=model,
        weights=frame_weights(model.talker),
        rows=batch,
        rotary=Rotary(config.transformer, length=limits.positions, device=cpu),
        predictor_rotary=Rotary(config.predictor.transformer, length=config.code_groups + 1, device=cpu),
    )


def in_the_middle(
    bench: Bench, lengths: Sequence[int], *, seed: int, sampling: Sequence[Sampling] | None = None
) -> None:
    """Fill every row with random state: `lengths[i]` positions in row i's cache."""
    generator, rows, config = torch.Generator().manual_seed(seed), bench.rows, bench.model.talker.config
    rows.cache.data.normal_(generator=generator)
    rows.predictor_cache.data.fill_(float("nan"))  # nothing of an earlier frame may be read
    for row, length in enumerate(lengths):
        trailing = torch.randn(row, config.transformer.hidden, generator=generator)
        chosen = sampling[row % len(sampling)] if sampling else Sampling()
        rows.admit(row, seed=seed + row, sampling=chosen, prompt=length, trailing=trailing)
        rows.frame[row] = row
    rows.hidden.normal_(generator=generator)
    rows.code0.random_(0, config.vocab - 1024, generator=generator)
    rows.seen.copy_(torch.rand(rows.seen.shape, generator=generator) < 0.2)
    rows.advance.fill_(True)


SAMPLINGS = (
    Sampling(),
    Sampling(talker=StageSampling(strategy="greedy"), predictor=StageSampling(top_k=5, top_p=0.8)),
    Sampling(talker=StageSampling(top_p=0.6, top_k=0), predictor=StageSampling(top_k=0, temperature=1.7)),
)


def snapshot(rows: Rows) -> dict[str, torch.Tensor]:
    """Everything a step may change."""
    names = ("position", "frame", "code0", "hidden", "seen", "codes")
    return {name: getattr(rows, name).clone() for name in names} | {"cache": rows.cache.data.clone()}
