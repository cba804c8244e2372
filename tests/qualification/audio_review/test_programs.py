"""SoX, the loudness meter and the two models: known answers, what is refused, and what is missing."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest

from qualification.audio_review import loudness, models, sox
from qualification.audio_review.dnsmos import DnsmosModel
from qualification.audio_review.policy import DNSMOS, VOICE
from qualification.audio_review.programs import Programs
from qualification.audio_review.voice import VoiceModel, activity
from qualification.clip import encode_wav
from qualification.digest import sha256_bytes
from qualification.errors import InputError
from qualification.evidence_view import EvidenceView
from qualification.tamper.good import Good
from tests.qualification.audio_review.sounds import POLICY, Pcm, noise, reviewed, silence, speech, tone

needs_sox = pytest.mark.skipif(shutil.which("sox") is None, reason="SoX is a program of the system")


def _share(pcm: Pcm) -> float:
    pytest.importorskip("onnxruntime")
    found = VoiceModel(models.find(POLICY.models[VOICE])).probabilities(models.resample(pcm))
    return activity(found, POLICY.limits.voice_probability).share


@needs_sox
def test_sox_decodes_the_very_samples(tmp_path: Path) -> None:
    pcm = speech().tobytes()
    (tmp_path / "a.wav").write_bytes(encode_wav(pcm))
    found = sox.read(tmp_path / "a.wav")
    assert found == sox.SoxFacts(
        rate_hz=24_000, channels=1, bits=16, samples=len(pcm) // 2, encoding=sox.ENCODING,
        pcm_sha256=sha256_bytes(pcm), warnings=0,
    )  # fmt: skip


@needs_sox
def test_sox_complains_of_an_early_end_and_refuses_what_is_no_wav(tmp_path: Path) -> None:
    (tmp_path / "cut.wav").write_bytes(encode_wav(speech().tobytes())[:50_000])
    (tmp_path / "text.wav").write_bytes(b"hello\n")
    cut = sox.read(tmp_path / "cut.wav")
    assert cut is not None
    assert cut.warnings > 0
    assert cut.samples == speech().size  # what the header promises
    assert sox.read(tmp_path / "text.wav") is None


@pytest.mark.parametrize(("level", "expected"), [(1.0, -3.01), (0.1, -23.01)])
def test_loudness_of_the_standard_s_sine(level: float, expected: float) -> None:
    pytest.importorskip("pyloudnorm")
    assert loudness.integrated(tone(5.0, level, 997.0)) == pytest.approx(expected, abs=0.1)


def test_what_is_too_short_or_silent_has_no_loudness() -> None:
    pytest.importorskip("pyloudnorm")
    assert loudness.integrated(tone(0.3)) is None
    assert loudness.integrated(silence(2.0)) is None


def test_a_voice_is_heard_in_speech_and_not_in_what_is_none() -> None:
    assert _share(speech()) > 0.8
    for other in (silence(2.0), noise(2.0), tone(2.0)):
        assert _share(other) < 0.2
    half = np.concatenate([speech()[:48_000], silence(4.0)])
    assert 0.2 < _share(half) < 0.6


def test_dnsmos_says_the_same_twice_and_falls_with_noise() -> None:
    pytest.importorskip("onnxruntime")
    found = models.find(POLICY.models[DNSMOS])
    wave = models.resample(speech())
    clean, again = DnsmosModel(found).scores(wave), DnsmosModel(found).scores(wave)
    assert clean == again
    loud = models.resample((speech() * 0.5 + noise(speech().size / 24_000, 0.1) * 0.5).astype(np.int16))
    noisy = DnsmosModel(found).scores(loud)
    assert noisy.background < clean.background - 0.5
    assert noisy.overall < clean.overall


def test_what_fails_takes_only_its_own_figures_with_it(good_bundle: Good, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sox, "version", lambda: None)
    asked = Programs(
        evidence=EvidenceView(good_bundle.root), policy=dataclasses.replace(POLICY, models={}), recogniser=None,
        without=frozenset({"loudness"}), say=lambda _: None,
    )  # fmt: skip
    assert asked.ask([reviewed(speech())]) == (reviewed(speech()),)
    assert {name: why.partition(";")[0] for name, why in asked.absent.items()} == {
        "sox": "SoX is not installed",
        "loudness": "Left out by the caller.",
        "voice": "the policy pins no model for voice",
        "dnsmos": "the policy pins no model for dnsmos",
        "recogniser": "no recogniser was mounted",
    }


def test_a_model_of_other_bytes_or_without_its_wheel_is_not_used() -> None:
    pytest.importorskip("onnxruntime")
    pin = POLICY.models[VOICE]
    with pytest.raises(InputError, match="another"):
        models.find(dataclasses.replace(pin, sha256="0" * 64))
    with pytest.raises(InputError, match="not installed"):
        models.find(dataclasses.replace(pin, distribution="no-such-distribution"))
