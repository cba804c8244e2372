"""How much of everything: the two presets, `full` (an accelerator, or a CPU and days) and `smoke` (a CPU and minutes).

A training stage ends at its number of steps or when its time is used up, whichever comes first, and always with a
finished learning-rate
schedule: progress is the larger of the two shares. So a slower machine gives a less trained model, never an
unfinished one; what was reached is
recorded beside the checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from recipe.errors import RecipeError


@dataclass(frozen=True, kw_only=True)
class TextSettings:
    sentences: int = 43_000
    seed: int = 20_260_101
    descriptions_per_voice: int = 96


@dataclass(frozen=True, kw_only=True)
class CodecSettings:
    """`hours` of audio are enough to start on; `segments` of `frames` make a batch."""

    hours: float = 8.0
    segments: int = 20
    frames: int = 20
    steps: int = 8_000
    seconds: float = 200.0
    learning_rate: float = 1e-3
    warmup_steps: int = 150
    warm_share: float = 0.12  # of the beginning, in which nothing is quantised
    warm_limit: float = 3.3  # spectral distance above which the warm phase has failed
    frozen_share: float = 0.3  # of the end, in which encoder and codebooks stand still and the decoder alone learns


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """Batches of `rows` utterances that fit into `length` positions."""

    length: int
    rows: int


@dataclass(frozen=True, kw_only=True)
class TalkerSettings:
    buckets: tuple[Bucket, ...] = (Bucket(length=224, rows=224), Bucket(length=400, rows=112))
    predictor_frames: int = 18
    steps: int = 14_000
    seconds: float = 255.0
    learning_rate: float = 1.5e-3
    warmup_steps: int = 200
    weight_decay: float = 0.02
    undescribed_share: float = 0.25
    streaming_share: float = 0.1
    corrupted_frames: float = 0.06
    corrupted_codes: float = 0.05


@dataclass(frozen=True, kw_only=True)
class OnsetSettings:
    """The decoder's last lesson: the first `frames` frames of `utterances` utterances, `rows` a batch."""

    utterances: int = 5_000
    frames: int = 20
    rows: int = 48
    steps: int = 2_400
    seconds: float = 60.0
    learning_rate: float = 5e-4
    warmup_steps: int = 50


@dataclass(frozen=True, kw_only=True)
class EvaluateSettings:
    """The first `seeds` of each held-out sentence, at most `frames` frames each."""

    seeds: int = 5
    frames: int = 256


@dataclass(frozen=True, kw_only=True)
class ModelShape:
    """Sizes of the exported model; everything else is in `recipe.model_config`."""

    text_vocabulary: int = 3_072
    text_width: int = 96
    width: int = 192
    intermediate: int = 512
    layers: int = 5
    predictor_width: int = 128
    predictor_intermediate: int = 256
    predictor_layers: int = 2
    codebook_size: int = 256
    codebook_dim: int = 128
    latent: int = 128
    decoder_dim: int = 192
    encoder_width: int = 24


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One run of the recipe. `work` holds everything that is made on the way."""

    work: Path
    device: str
    processes: int
    text: TextSettings = field(default_factory=TextSettings)
    codec: CodecSettings = field(default_factory=CodecSettings)
    talker: TalkerSettings = field(default_factory=TalkerSettings)
    onset: OnsetSettings = field(default_factory=OnsetSettings)
    evaluate: EvaluateSettings = field(default_factory=EvaluateSettings)
    shape: ModelShape = field(default_factory=ModelShape)


def preset(name: str, *, work: Path, device: str, processes: int) -> Settings:
    """The settings of a preset.

    Raises:
        RecipeError: no such preset.
    """
    if name == "full":
        return Settings(work=work, device=device, processes=processes)
    if name != "smoke":
        raise RecipeError(f"preset {name!r} does not exist; use full or smoke")
    return Settings(
        work=work,
        device=device,
        processes=processes,
        text=TextSettings(sentences=96, descriptions_per_voice=4),
        codec=CodecSettings(hours=0.02, segments=4, frames=12, steps=12, seconds=60.0, warmup_steps=3,
        warm_limit=100.0),
        talker=TalkerSettings(
            buckets=(Bucket(length=224, rows=4), Bucket(length=400, rows=2)),
            predictor_frames=4, steps=12, seconds=60.0, warmup_steps=3,
        ),
        onset=OnsetSettings(utterances=20, frames=8, rows=2, steps=3, seconds=60.0, warmup_steps=1),
        evaluate=EvaluateSettings(seeds=1, frames=12),
        shape=ModelShape(
            text_vocabulary=1_024, text_width=32, width=64, intermediate=128, layers=2, predictor_width=64,
            predictor_intermediate=64, predictor_layers=1, codebook_size=64, codebook_dim=32, latent=32, decoder_dim=32,
            encoder_width=8,
        ),
    )  # fmt: skip


def limited(settings: Settings, *, codec_seconds: float | None, talker_seconds: float | None) -> Settings:
    """The same settings with other time limits where given."""
    codec, talker = settings.codec, settings.talker
    return replace(
        settings,
        codec=replace(codec, seconds=codec.seconds if codec_seconds is None else codec_seconds),
        talker=replace(talker, seconds=talker.seconds if talker_seconds is None else talker_seconds),
    )
