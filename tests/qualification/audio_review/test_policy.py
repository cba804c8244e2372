"""The shipped policy: ranges follow from their sources, licences from the wheels, and nothing is listed twice."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution

import pytest

from qualification.audio_review.facts import measure
from qualification.audio_review.policy import parse
from qualification.audio_review.spelling import spoken_characters
from qualification.errors import InputError
from qualification.licence_sources import load_mapping, read_licence
from qualification.workload import Kind, load_workload
from recipe.render import render
from recipe.sentence import Sentence
from recipe.text import spoken_form
from recipe.voices import VOICES
from tests.qualification.audio_review.sounds import POLICY

WORKLOAD = load_workload()
MIDDLE = next(voice for voice in VOICES if voice.words_per_minute == 170 and voice.espeak_pitch == 50)


def test_every_language_of_the_workload_has_a_range() -> None:
    assert set(WORKLOAD.languages) == POLICY.pace.keys()


@pytest.mark.parametrize("language", sorted(POLICY.pace))
def test_a_range_is_what_its_source_says(language: str) -> None:
    """The synthesiser's pace is measured again; its voices draw noise by chance, so to 3 %."""
    entries = [entry for entry in WORKLOAD.of_kind(Kind.COVERAGE, Kind.AUTO) if entry.language == language]
    characters, seconds = 0, 0.0
    for entry in entries:
        spoken = spoken_form(entry.text, language)
        pcm = render(Sentence(language=language, text=entry.text, spoken=spoken, voice=MIDDLE))
        characters += spoken_characters(entry.text)
        seconds += measure(pcm, POLICY.limits.silence_rms).spoken_seconds
    known = POLICY.pace[language]
    told = float(re.findall(r"(?:half of|twice) ([0-9.]+) a second", known.source)[0])
    assert characters / seconds == pytest.approx(told, rel=0.03)
    assert known.low == pytest.approx(told / 2, abs=0.06)
    assert known.high == pytest.approx(2 * (5.18 if language == "zh" else told), abs=0.06)


@pytest.mark.parametrize("name", sorted(POLICY.models))
def test_the_licence_of_a_model_is_that_of_its_wheel(name: str) -> None:
    pin = POLICY.models[name]
    try:
        wheel = distribution(pin.distribution)
    except PackageNotFoundError:
        pytest.skip(f"{pin.distribution} is of the extra `review`")
    assert read_licence(wheel, load_mapping()).expression == pin.licence


def test_a_check_is_listed_once() -> None:
    document = {**POLICY.document, "checks": [*POLICY.document["checks"], POLICY.document["checks"][0]]}
    with pytest.raises(InputError, match=r"audio-review\.exact is listed twice"):
        parse(document)
