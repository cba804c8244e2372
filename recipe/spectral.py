"""How far two waveforms are apart for an ear: log and linear magnitude at several resolutions, mel bands, level, and
a little waveform."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.contract import SAMPLE_RATE_HZ

RESOLUTIONS = (2048, 1024, 512, 256, 128)
MEL_SIZE, MEL_BANDS = 1024, 80
LEVEL_WINDOW = 960  # samples, 40 ms
FLOOR = 1e-3  # of magnitudes, so that silence does not dominate the logarithms
WAVE_WEIGHT, LINEAR_WEIGHT, MEL_WEIGHT, LEVEL_WEIGHT = 0.3, 1.0, 1.0, 0.2


def distance(made: Tensor, wanted: Tensor) -> Tensor:
    """Training loss between waveforms [B, N]."""
    total = WAVE_WEIGHT * F.l1_loss(made, wanted) / wanted.abs().mean().clamp(min=1e-3)
    for size in RESOLUTIONS:
        ours, theirs = magnitude(made, size), magnitude(wanted, size)
        total = total + F.l1_loss((ours + FLOOR).log(), (theirs + FLOOR).log()) / len(RESOLUTIONS)
        total = total + LINEAR_WEIGHT * F.l1_loss(ours, theirs) / theirs.mean().clamp(min=FLOOR) / len(RESOLUTIONS)
    total = total + MEL_WEIGHT * F.l1_loss(log_mel(made), log_mel(wanted))
    return total + LEVEL_WEIGHT * F.l1_loss(_level(made), _level(wanted))


def magnitude(wave: Tensor, size: int) -> Tensor:
    """STFT magnitudes [B, size / 2 + 1, frames], scaled so that white noise keeps its level."""
    window = torch.hann_window(size, device=wave.device)
    spectrum = torch.stft(
        wave, size, hop_length=size // 4, window=window, center=True, pad_mode="constant", return_complex=True
    )
    power = spectrum.real.square() + spectrum.imag.square()
    return (power / window.square().sum() + 1e-10).sqrt()


def log_mel(wave: Tensor) -> Tensor:
    """Log mel magnitudes [B, 80, frames]."""
    return ((_mel_bank(wave.device) @ magnitude(wave, MEL_SIZE)) + FLOOR).log()


def mel_correlation(made: Tensor, wanted: Tensor) -> float:
    """Pearson correlation of two log mel spectrograms, over everything."""
    pair = torch.stack((log_mel(made).flatten(), log_mel(wanted).flatten()))
    return float(torch.corrcoef(pair)[0, 1])


def _level(wave: Tensor) -> Tensor:
    """Log power [B, windows] of short windows: of the whole, one loud pop in a quiet place would satisfy it."""
    return (wave.square().unfold(1, LEVEL_WINDOW, LEVEL_WINDOW).mean(dim=2) + 1e-6).log()


@lru_cache(maxsize=2)
def _mel_bank(device: torch.device) -> Tensor:
    """Triangular filters [80, 513], each of unit sum; kept on the device, because a captured step may not copy from
    the host."""

    def to_mel(hertz: float) -> float:
        return 2595.0 * float(np.log10(1.0 + hertz / 700.0))

    edges = 700.0 * (10.0 ** (np.linspace(to_mel(40.0), to_mel(SAMPLE_RATE_HZ / 2), MEL_BANDS + 2) / 2595.0) - 1.0)
    bins = np.linspace(0.0, SAMPLE_RATE_HZ / 2, MEL_SIZE // 2 + 1)
    rising = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
    bank = np.maximum(0.0, np.minimum(rising, falling))
    unit = bank / np.maximum(bank.sum(axis=1, keepdims=True), 1e-8)
    return torch.from_numpy(unit.astype(np.float32)).to(device)
