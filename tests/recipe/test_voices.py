"""Descriptions say what the voice is, and a description is understood again."""

from __future__ import annotations

import random

import pytest

from recipe.voices import VOICES, Gender, Level, Voice, describe, nearest_voice


def test_eighteen_distinct_voices() -> None:
    assert len(VOICES) == len({(v.variant, v.espeak_pitch, v.words_per_minute) for v in VOICES}) == 18
    assert [voice.index for voice in VOICES] == list(range(18))


@pytest.mark.parametrize("voice", VOICES, ids=str)
def test_a_description_names_the_voices_gender_and_never_another_level(voice: Voice) -> None:
    rng = random.Random(3)
    for _ in range(50):
        text = describe(voice, rng)
        understood = nearest_voice(text)
        assert understood.gender is voice.gender, text
        assert understood.pitch in (voice.pitch, Level.MEDIUM), text
        assert understood.rate in (voice.rate, Level.MEDIUM), text
        assert text[0].isupper()
        assert "{" not in text


def test_most_descriptions_name_pitch_and_pace() -> None:
    rng, voice = random.Random(4), Voice(gender=Gender.MALE, pitch=Level.LOW, rate=Level.HIGH)
    full = sum(nearest_voice(describe(voice, rng)) == voice for _ in range(200))
    assert 130 <= full < 200, "a share leaves pitch or pace unsaid"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A calm adult male voice with a low pitch, speaking slowly.", (Gender.MALE, Level.LOW, Level.LOW)),
        ("A young man with a high pitch who speaks quickly.", (Gender.MALE, Level.HIGH, Level.HIGH)),
        ("A woman.", (Gender.FEMALE, Level.MEDIUM, Level.MEDIUM)),
    ],
)
def test_a_free_description_finds_its_nearest_voice(text: str, expected: tuple[Gender, Level, Level]) -> None:
    voice = nearest_voice(text)
    assert (voice.gender, voice.pitch, voice.rate) == expected
