"""Facts of stored audio."""

from __future__ import annotations

import io
import math
import struct
import wave

import pytest

from qualification import clip
from qualification.digest import sha256_bytes
from qualification.errors import BundleError


def _pcm(*samples: int) -> bytes:
    return struct.pack(f"<{len(samples)}h", *samples)


def test_the_wav_is_a_wav() -> None:
    with wave.open(io.BytesIO(clip.encode_wav(_pcm(1, -2, 3)))) as stream:
        assert (stream.getnchannels(), stream.getsampwidth(), stream.getframerate()) == (1, 2, 24_000)
        assert stream.readframes(9) == _pcm(1, -2, 3)


def test_facts() -> None:
    found = clip.facts(_pcm(*[0] * 480, *[16_384] * 480, 32_767, -32_768, 5))
    assert found.samples == 963
    assert found.clipped == 2
    assert found.peak == 1.0
    assert found.window_rms == (0.0, 0.5)
    assert found.window_crossings == (0, 0)
    assert found.clipped_fraction == 2 / 963
    assert found.seconds == 963 / 24_000
    energy = 480 * 16_384**2 + 32_767**2 + 32_768**2 + 25
    assert found.rms == math.sqrt(energy / 963) / 32_768


def _voiced(found: clip.Clip) -> float:
    return found.voiced_fraction(rms_min=0.1, crossings_min=0.01, crossings_max=0.25)


def test_a_voiced_window_is_loud_and_changes_its_sign_as_a_voice_does() -> None:
    wave = [16_000 * (1 if step // 60 % 2 else -1) for step in range(480)]  # 200 Hz
    buzz = [16_000 * (1 if step % 2 else -1) for step in range(480)]
    assert clip.facts(_pcm(*wave)).window_crossings == (7,)
    assert _voiced(clip.facts(_pcm(*wave))) == 1.0
    assert _voiced(clip.facts(_pcm(*buzz))) == 0.0
    assert _voiced(clip.facts(_pcm(*[16_000] * 480))) == 0.0
    assert _voiced(clip.facts(_pcm(*[step // 10 for step in wave]))) == 0.0
    assert _voiced(clip.facts(_pcm(*wave, *buzz))) == 0.5


def test_loudness_varies_when_quiet_windows_stand_beside_loud_ones() -> None:
    loud, quiet = [9_000, -9_000] * 240, [900, -900] * 240
    assert clip.facts(_pcm(*loud, *quiet)).varies(10)
    assert not clip.facts(_pcm(*loud, *quiet)).varies(10.5)
    assert not clip.facts(_pcm(*loud, *loud)).varies(3)


def test_less_than_one_window_is_no_speech() -> None:
    found = clip.facts(_pcm(*[30_000, -30_000] * 239))
    assert found.voiced_fraction(rms_min=0, crossings_min=0, crossings_max=1) == 0.0
    assert not found.varies(1)


def test_the_hash_is_over_the_samples() -> None:
    data = _pcm(1, 2, 3)
    assert clip.parse_wav(clip.encode_wav(data), "a.wav").pcm_sha256 == sha256_bytes(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        clip.encode_wav(b""),
        clip.encode_wav(_pcm(1)) + b"\0",
        clip.encode_wav(_pcm(1, 2))[:-2],
        clip.encode_wav(_pcm(1, 2)) + _pcm(3),
        clip.encode_wav(_pcm(1)).replace(b"RIFF", b"RIFX"),
        clip.encode_wav(_pcm(1)).replace(struct.pack("<I", 24_000), struct.pack("<I", 44_100)),
        clip.encode_wav(_pcm(1))[:40] + b"\xff\xff\xff\xff" + _pcm(1),
    ],
)
def test_refuses_another_wav(data: bytes) -> None:
    with pytest.raises(BundleError, match=r"a\.wav: not a mono 24 kHz"):
        clip.parse_wav(data, "a.wav")
