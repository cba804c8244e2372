"""The distance between waveforms: zero for equals, ordered by damage."""

from __future__ import annotations

import torch

from recipe.spectral import distance, log_mel, mel_correlation


def tone(hertz: float) -> torch.Tensor:
    return 0.1 * torch.sin(2 * torch.pi * hertz * torch.arange(24_000) / 24_000)[None]


def test_equal_waveforms_have_no_distance() -> None:
    assert float(distance(tone(440), tone(440))) == 0.0
    assert mel_correlation(tone(440), tone(440)) > 0.9999


def test_more_damage_is_farther() -> None:
    wanted = tone(440)
    torch.manual_seed(1)
    near, far = wanted + 0.003 * torch.randn_like(wanted), tone(1_500)
    assert 0.0 < float(distance(near, wanted)) < float(distance(far, wanted))
    assert float(distance(0.5 * wanted, wanted)) > float(distance(0.95 * wanted, wanted))


def test_mel_bands_rise_with_frequency() -> None:
    assert int(log_mel(tone(300)).mean(dim=2).argmax()) < int(log_mel(tone(3_000)).mean(dim=2).argmax())
