"""The codec decoder: 16 codes a frame to 1,920 samples at 24 kHz, as one full pass or as an exact stream.

With a `CodecState` every causal convolution finds its left context, every transposed convolution the overlapping tail of the frames
before (kept without bias, so that the bias is added once) and every attention layer the K/V frames its window still sees, at absolute
positions. Any partition of the codes into calls therefore gives the samples of one full pass, to float rounding. Without a state the call is
the full pass. Weights and arithmetic are FP32. Parameter names are those below `decoder.` in the published speech tokenizer.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.codec_layers import (
    CausalConv1d,
    CausalTransposedConv1d,
    ConvNeXtBlock,
    ResidualUnit,
    SnakeBeta,
    WindowedTransformer,
)
from engine.codec_state import CodecState, StateLayout
from engine.config import CodecConfig

MIN_CLUSTER_USAGE = 1e-5


class Codebook(nn.Module):
    """One codebook as trained by exponential moving averages: vectors are sums over usage."""

    def __init__(self, size: int, dim: int) -> None:
        super().__init__()
        self.cluster_usage = nn.Parameter(torch.ones(size))
        self.embedding_sum = nn.Parameter(torch.zeros(size, dim))

    def vectors(self) -> Tensor:
        """Code vectors [K, D]."""
        return self.embedding_sum / self.cluster_usage.clamp(min=MIN_CLUSTER_USAGE)[:, None]


class QuantizerLayer(nn.Module):
    """Holds the published name `_codebook`."""

    def __init__(self, size: int, dim: int) -> None:
        super().__init__()
        self._codebook = Codebook(size, dim)

    def vectors(self) -> Tensor:
        return self._codebook.vectors()


class QuantizerStack(nn.Module):
    """Holds the published name `vq.layers`."""

    def __init__(self, count: int, size: int, dim: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(QuantizerLayer(size, dim) for _ in range(count))


class ResidualQuantizer(nn.Module):
    """A residual group: codebook vectors are summed and projected. `input_proj` belongs to the encoder's direction."""

    def __init__(self, count: int, size: int, dim: int) -> None:
        super().__init__()
        self.input_proj = nn.Conv1d(dim, dim // 2, 1, bias=False)
        self.output_proj = nn.Conv1d(dim // 2, dim, 1, bias=False)
        self.vq = QuantizerStack(count, size, dim // 2)

    def decode(self, codes: Tensor) -> Tensor:
        """Codes [B, N, T] -> latent [B, codebook_dim, T]."""
        total = F.embedding(codes[:, 0], self.vq.layers[0].vectors())  # type: ignore[operator]  # ModuleList items
        for index in range(1, codes.shape[1]):
            total = total + F.embedding(codes[:, index], self.vq.layers[index].vectors())  # type: ignore[operator]
        projected: Tensor = self.output_proj(total.transpose(1, 2))
        return projected


class SplitQuantizer(nn.Module):
    """Codebook 0 (semantic) and the acoustic rest have projections of their own; their latents add."""

    def __init__(self, config: CodecConfig) -> None:
        super().__init__()
        self.rvq_first = ResidualQuantizer(1, config.codebook_size, config.codebook_dim)
        self.rvq_rest = ResidualQuantizer(config.codebooks - 1, config.codebook_size, config.codebook_dim)

    def decode(self, codes: Tensor) -> Tensor:
        """Codes [B, 16, T] -> latent [B, codebook_dim, T]."""
        return self.rvq_first.decode(codes[:, :1]) + self.rvq_rest.decode(codes[:, 1:])


class UpsampleBlock(nn.ModuleList):
    """Transposed convolution by a whole factor, then a ConvNeXt block (published names `0` and `1`)."""

    def __init__(self, dim: int, factor: int, layout: StateLayout) -> None:
        super().__init__([CausalTransposedConv1d(dim, dim, factor, factor, layout), ConvNeXtBlock(dim, layout)])


class DecoderBlock(nn.Module):
    """Snake, transposed convolution by `rate`, three dilated residual units (published name `block`)."""

    def __init__(self, in_dim: int, out_dim: int, rate: int, layout: StateLayout) -> None:
        super().__init__()
        units = [ResidualUnit(out_dim, dilation, layout) for dilation in (1, 3, 9)]
        self.block = nn.ModuleList(
            [SnakeBeta(in_dim), CausalTransposedConv1d(in_dim, out_dim, 2 * rate, rate, layout), *units]
        )

    def forward(self, x: Tensor, state: CodecState | None) -> Tensor:
        for stage in self.block:
            x = stage(x, state)
        return x


class CodecDecoder(nn.Module):
    """`decoder.*` of the speech tokenizer."""

    def __init__(self, config: CodecConfig) -> None:
        super().__init__()
        self.config = config
        self.layout = StateLayout()
        self.quantizer = SplitQuantizer(config)
        self.pre_conv = CausalConv1d(config.codebook_dim, config.latent, 3, layout=self.layout)
        self.pre_transformer = WindowedTransformer(config, self.layout)
        self.upsample = nn.ModuleList(
            UpsampleBlock(config.latent, factor, self.layout) for factor in config.upsampling_ratios
        )
        dims = [config.decoder_dim // 2**index for index in range(len(config.upsample_rates) + 1)]
        blocks = [
            DecoderBlock(dims[index], dims[index + 1], rate, self.layout)
            for index, rate in enumerate(config.upsample_rates)
        ]
        self.decoder = nn.ModuleList(
            [
                CausalConv1d(config.latent, dims[0], 7, layout=self.layout),
                *blocks,
                SnakeBeta(dims[-1]),
                CausalConv1d(dims[-1], 1, 7, layout=self.layout),
            ]
        )

    def new_state(self, rows: int, device: torch.device) -> CodecState:
        """Streaming state for `rows` utterances, all at their beginning."""
        return CodecState(self.layout, rows=rows, device=device)

    def forward(self, codes: Tensor, state: CodecState | None = None) -> Tensor:
        """Codes [B, 16, T] -> samples [B, 1920 * T] within [-1, 1], FP32."""
        return self.synthesize(self.quantizer.decode(codes), state)

    def unlimited(self, codes: Tensor, state: CodecState | None = None) -> Tensor:
        """As `forward`, before limiting, which would hide an infinite sample."""
        return self.waveform(self.quantizer.decode(codes), state)

    def synthesize(self, latent: Tensor, state: CodecState | None = None) -> Tensor:
        """Quantised latent [B, codebook_dim, T] -> samples [B, 1920 * T] within [-1, 1]."""
        return self.waveform(latent, state).clamp(-1.0, 1.0)

    def waveform(self, latent: Tensor, state: CodecState | None = None) -> Tensor:
        """As `synthesize`, before limiting: training needs a gradient where the limit would cut."""
        x = self.pre_conv(latent, state)
        x = self.pre_transformer(x, state)  # [B, latent, T]
        for upsample in self.upsample:
            for stage in upsample:  # type: ignore[attr-defined]  # UpsampleBlock is a ModuleList
                x = stage(x, state)
        for stage in self.decoder:
            x = stage(x, state)
        if state is not None:
            state.advance(latent.shape[2])
        samples: Tensor = x[:, 0]
        return samples
