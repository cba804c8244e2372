"""Measures of an utterance on signals whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from recipe.measures import measure


def pcm(wave: np.ndarray) -> np.ndarray:
    return np.rint(np.clip(wave, -1, 1) * 32_767).astype(np.int16)


@pytest.mark.parametrize("hertz", [80.0, 150.0, 310.0])
def test_pitch_of_a_harmonic_sound(hertz: float) -> None:
    time = np.arange(24_000) / 24_000
    wave = sum(0.1 / k * np.sin(2 * np.pi * k * hertz * time) for k in range(1, 8))
    found = measure(pcm(wave)).pitch.hertz
    assert found == pytest.approx(hertz, rel=0.03)


def test_noise_has_no_pitch_and_silence_no_speech() -> None:
    noise = np.random.default_rng(1).normal(0, 0.1, 24_000)
    assert measure(pcm(noise)).pitch.hertz is None
    silence = measure(np.zeros(24_000, dtype=np.int16))
    assert silence.speech_share == 0.0
    assert silence.rms == 0.0
    assert silence.pitch.hertz is None


def test_half_speech_and_clipping_are_counted() -> None:
    wave = np.concatenate((np.full(12_000, 0.2) * np.sin(np.arange(12_000) / 9), np.zeros(12_000)))
    wave[100:103] = 1.5
    found = measure(pcm(wave))
    assert found.speech_share == pytest.approx(0.5, abs=0.03)
    assert found.clipped == 3
    assert found.seconds == 1.0


def test_empty_audio_is_nothing() -> None:
    found = measure(np.zeros(0, dtype=np.int16))
    assert found.seconds == 0.0
    assert found.speech_share == 0.0
