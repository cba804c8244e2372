"""espeak-ng through ctypes: one sentence at a time, and its clean edges."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recipe.corpus import read_shards, rendered_hours, rendering_complete, write_sentences
from recipe.errors import RecipeError
from recipe.measures import measure
from recipe.render import TRAIL_SAMPLES, finish, render, render_all
from recipe.sentence import Sentence
from recipe.voices import Gender, Level, Voice


def sentence(gender: Gender = Gender.FEMALE, pitch: Level = Level.MEDIUM, rate: Level = Level.MEDIUM) -> Sentence:
    text = "The small boat came home before the rain."
    return Sentence(language="en", text=text, spoken=text, voice=Voice(gender=gender, pitch=pitch, rate=rate))


def test_a_sentence_becomes_whole_frames_of_speech_that_end_in_silence() -> None:
    pcm = render(sentence())
    assert pcm.dtype == np.int16
    assert len(pcm) % 1_920 == 0
    assert not pcm[-TRAIL_SAMPLES:].any()
    found = measure(pcm)
    assert 1.0 < found.seconds < 5.0
    assert found.speech_share > 0.5
    assert found.clipped == 0


def test_pitch_and_rate_follow_the_voice() -> None:
    low = measure(render(sentence(gender=Gender.MALE, pitch=Level.LOW, rate=Level.HIGH)))
    high = measure(render(sentence(pitch=Level.HIGH, rate=Level.LOW)))
    assert low.pitch.hertz is not None
    assert high.pitch.hertz is not None
    assert high.pitch.hertz > 1.5 * low.pitch.hertz
    assert high.seconds > 1.2 * low.seconds


def test_silence_is_refused() -> None:
    with pytest.raises(RecipeError, match="silence"):
        finish(np.zeros(22_050, dtype=np.float32))


def test_nothing_to_say_is_refused() -> None:
    voice = Voice(gender=Gender.MALE, pitch=Level.LOW, rate=Level.LOW)
    with pytest.raises(RecipeError, match=r"nothing to say|silence"):
        render(Sentence(language="en", text="", spoken="", voice=voice))


def test_shards_hold_the_sentences_in_order(tmp_path: Path) -> None:
    items = [sentence(rate=Level.LOW), sentence(rate=Level.HIGH)]
    assert write_sentences(tmp_path, items) == 2
    render_all(tmp_path, 1, lambda line: None)
    (shard,) = list(read_shards(tmp_path))
    utterances = list(shard.utterances())
    assert len(utterances) == 2
    assert len(utterances[0]) > len(utterances[1])
    assert np.array_equal(utterances[0], render(items[0]))
    assert rendering_complete(tmp_path)
    assert rendered_hours(tmp_path) == pytest.approx(sum(map(len, utterances)) / 24_000 / 3_600, rel=0.01)
