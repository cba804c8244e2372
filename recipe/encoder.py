"""The codec's encoder and its vector quantiser in training. Neither is shipped: the model only ever decodes.

The encoder is causal: the latent of a frame has heard no sample after that frame. The codebooks live in the engine's
decoder, as sums and usages,
and follow the encoder by exponential moving averages; entries that nobody uses restart at a latent of the current
batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.codec import Codebook, CodecDecoder, ResidualQuantizer
from engine.codec_layers import WindowedTransformer
from engine.codec_state import StateLayout
from engine.config import CodecConfig

WIDTHS = (
    1,
    2,
    4,
    8,
    10,
    10,
)  # times the encoder's width, after each downsampling of 3, 4, 5, 8, 2, 2 (the first: before it)
STRIDES = (3, 4, 5, 8, 2, 2)
LOUDNESS = 8.0  # speech at an RMS of 0.1 or so reaches the first layer near unit variance
DECAY = 0.99
DEAD_USAGE = 0.1  # an entry used less often than this a step restarts


class Downsample(nn.Module):
    """Two residual convolutions, then a causal strided one."""

    def __init__(self, in_dim: int, out_dim: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.residual = nn.ModuleList(nn.Conv1d(in_dim, in_dim, 3, dilation=dilation) for dilation in (1, 3))
        self.point = nn.ModuleList(nn.Conv1d(in_dim, in_dim, 1) for _ in range(2))
        self.down = nn.Conv1d(in_dim, out_dim, 2 * stride, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        for dilation, wide, point in zip((1, 3), self.residual, self.point, strict=True):
            x = x + point(F.elu(wide(F.pad(F.elu(x), (2 * dilation, 0)))))
        reduced: Tensor = self.down(F.pad(F.elu(x), (self.stride, 0)))
        return reduced


class Encoder(nn.Module):
    """Samples [B, 1920 * T] -> latents [B, codebook_dim, T]."""

    def __init__(self, config: CodecConfig, width: int) -> None:
        super().__init__()
        widths = [width * factor for factor in WIDTHS] + [config.latent]
        self.first = nn.Conv1d(1, widths[0], 7)
        self.stages = nn.ModuleList(
            Downsample(widths[index], widths[index + 1], stride) for index, stride in enumerate(STRIDES)
        )
        self.transformer = WindowedTransformer(config, StateLayout())
        self.last = nn.Conv1d(config.latent, config.codebook_dim, 3)

    def forward(self, samples: Tensor) -> Tensor:
        x = self.first(F.pad(LOUDNESS * samples[:, None], (6, 0)))
        for stage in self.stages:
            x = stage(x)
        x = x + self.transformer(x, None)
        latent: Tensor = self.last(F.pad(F.elu(x), (2, 0)))
        # Unit variance in every frame: without quantisation nothing else would bound the latents.
        return F.layer_norm(latent.transpose(1, 2), (latent.shape[1],)).transpose(1, 2)


@dataclass(frozen=True, kw_only=True)
class Quantised:
    """`codes` [B, 16, T]; `latent` [B, codebook_dim, T] that the decoder gets, with a straight-through gradient;
    `unquantised`, the same
    without quantisation; `commitment` scalar."""

    codes: Tensor
    latent: Tensor
    unquantised: Tensor
    commitment: Tensor


def quantise(decoder: CodecDecoder, latent: Tensor, *, learn: bool) -> Quantised:
    """Quantise encoder latents [B, codebook_dim, T] with the decoder's codebooks, and move these towards the latents
    if `learn`."""
    first = _residual(decoder.quantizer.rvq_first, latent, learn=learn)
    rest = _residual(decoder.quantizer.rvq_rest, latent, learn=learn)
    return Quantised(
        codes=torch.cat((first.codes, rest.codes), dim=1),
        latent=first.latent + rest.latent,
        unquantised=first.unquantised + rest.unquantised,
        commitment=first.commitment + rest.commitment,
    )


def _residual(group: ResidualQuantizer, latent: Tensor, *, learn: bool) -> Quantised:
    projected: Tensor = group.input_proj(latent).transpose(1, 2)  # [B, T, D]
    flat = projected.detach().reshape(-1, projected.shape[-1]).float()
    residual, codes = flat, []
    for layer in group.vq.layers:
        codebook: Codebook = layer._codebook  # type: ignore[assignment]  # ModuleList item, published name
        chosen = nearest(codebook.vectors(), residual)
        if learn:
            follow(codebook, residual, chosen)
        codes.append(chosen)
        residual = residual - F.embedding(chosen, codebook.vectors())
    total = (flat - residual).view_as(projected)
    straight = projected + (total - projected).detach()
    return Quantised(
        codes=torch.stack([code.view(projected.shape[:2]) for code in codes], dim=1),
        latent=group.output_proj(straight.transpose(1, 2)),
        unquantised=group.output_proj(projected.transpose(1, 2)),
        commitment=F.mse_loss(projected, total),
    )


def nearest(vectors: Tensor, points: Tensor) -> Tensor:
    """Index [N] of the nearest of `vectors` [K, D] for each of `points` [N, D]."""
    return (vectors.square().sum(1) - 2.0 * points @ vectors.T).argmin(dim=1)


@torch.no_grad()
def follow(codebook: Codebook, points: Tensor, chosen: Tensor) -> None:
    """One moving-average step of a codebook towards the points [N, D] that chose its entries, and restarts of unused
    entries."""
    size = codebook.cluster_usage.shape[0]
    one_hot = F.one_hot(chosen, size).to(points.dtype)  # [N, K]
    codebook.cluster_usage.mul_(DECAY).add_(one_hot.sum(0), alpha=1.0 - DECAY)
    codebook.embedding_sum.mul_(DECAY).add_(one_hot.T @ points, alpha=1.0 - DECAY)
    dead = codebook.cluster_usage < DEAD_USAGE
    fresh = points[torch.randint(points.shape[0], (size,), device=points.device)]
    codebook.embedding_sum.copy_(torch.where(dead[:, None], fresh, codebook.embedding_sum))
    codebook.cluster_usage.copy_(torch.where(dead, torch.ones_like(codebook.cluster_usage), codebook.cluster_usage))
