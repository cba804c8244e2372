"""Level, silence, loops and borders: each finds the fault that was made, and leaves natural speech alone."""

from __future__ import annotations

import numpy as np
import pytest

from qualification.audio_review import loops, seams
from qualification.audio_review.facts import measure
from qualification.audio_review.seams import Utterance
from tests.qualification.audio_review.sounds import POLICY, TEXTS, noise, packets, silence, speech, tone

LIMITS = POLICY.limits


def test_facts_of_a_made_wave() -> None:
    wave = np.concatenate([silence(0.5), np.full(2_400, 32_767, np.int16), silence(0.3), tone(1.0, 0.5), silence(0.2)])
    facts = measure(wave, LIMITS.silence_rms)
    assert (facts.clipped, facts.clipped_run) == (2_400, 2_400)
    assert (facts.leading_silence, facts.trailing_silence, facts.longest_pause) == pytest.approx((0.5, 0.2, 0.3))
    assert facts.offset == pytest.approx(2_400 / wave.size, rel=0.01)
    assert facts.spoken_seconds == pytest.approx(1.4)


def test_an_utterance_without_sound_is_silent_throughout() -> None:
    facts = measure(silence(1.0), LIMITS.silence_rms)
    assert (facts.leading_silence, facts.trailing_silence, facts.spoken_seconds) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize("number", range(len(TEXTS)))
@pytest.mark.parametrize("voice", [0, 12])
def test_natural_speech_does_not_repeat_itself(number: int, voice: int) -> None:
    found = loops.strongest(speech(number, voice))
    assert found is not None
    assert found.similarity < LIMITS.similarity_max - 0.05


@pytest.mark.parametrize("seconds", [0.8, 1.0, 1.6])
@pytest.mark.parametrize("times", [2, 4])
def test_a_stretch_that_comes_again_is_found_where_it_is(seconds: float, times: int) -> None:
    whole, start, length = speech(), 24_013, round(seconds * 24_000) + 7  # no multiple of any hop
    piece = whole[start : start + length]
    found = loops.strongest(np.concatenate([whole[:start], *[piece] * times, whole[start + length :]]))
    assert found is not None
    assert found.similarity > LIMITS.similarity_max
    assert found.lag % (length / 24_000) == pytest.approx(0, abs=0.02) or found.lag == pytest.approx(seconds, abs=0.02)


def test_a_voice_that_is_stuck_on_one_sound_is_found() -> None:
    whole = speech()
    vowel = whole[30_000:30_480]
    found = loops.strongest(np.concatenate([whole[:30_000], *[vowel] * 100]))
    assert found is not None
    assert found.similarity > 0.98


def test_repeated_silence_is_no_loop_and_short_utterances_have_none() -> None:
    found = loops.strongest(np.concatenate([speech()[:30_000], silence(3.0)]))
    assert found is not None
    assert found.similarity < LIMITS.similarity_max
    assert loops.strongest(speech()[:20_000]) is None
    assert loops.strongest(speech()[:100]) is None


def _utterances(frames: int = 4) -> list[Utterance]:
    return [Utterance(pcm=pcm, packets=packets(pcm, frames)) for pcm in (speech(0), speech(1), speech(2))]


def test_borders_of_clean_speech_are_like_other_frame_borders() -> None:
    found = seams.examine(_utterances(), LIMITS.click_score_max)
    assert found.borders > 30
    assert found.controls > 2.5 * found.borders
    assert found.clicks == 0
    assert found.above is not None
    assert found.above / found.borders < LIMITS.border_share_max


def test_a_loud_click_is_found_at_its_border_alone() -> None:
    one = _utterances()[0]
    clicked = seams.plant(one.pcm, one.borders[4:5], 0.3)
    found = seams.examine([Utterance(pcm=clicked, packets=one.packets)], LIMITS.click_score_max)
    assert found.clicks == 1
    assert max(seams.scores(clicked, one.borders)) == seams.scores(clicked, one.borders[4:5])[0]


def test_a_small_click_at_every_border_is_found_in_the_distribution() -> None:
    clicked = [Utterance(pcm=seams.plant(one.pcm, one.borders, 0.0125), packets=one.packets) for one in _utterances()]
    found = seams.examine(clicked, LIMITS.click_score_max)
    assert found.above is not None
    assert found.above / found.borders > 0.5


def test_clicks_inside_packets_are_not_blamed_on_borders() -> None:
    one = _utterances()[0]
    clicked = seams.plant(one.pcm, one.controls, 0.1)
    found = seams.examine([Utterance(pcm=clicked, packets=one.packets)], LIMITS.click_score_max)
    assert found.clicks == 0


def test_the_larger_the_planted_click_the_more_are_found() -> None:
    found = seams.examine(_utterances(), LIMITS.click_score_max).sensitivity
    assert [item.size for item in found] == list(seams.CLICK_SIZES)
    assert [item.found for item in found] == sorted(item.found for item in found)
    assert found[0].found < 0.5 * found[0].planted
    assert found[-1].found > 0.9 * found[-1].planted


def test_one_packet_has_no_border_and_single_frames_no_control() -> None:
    whole = speech()
    alone = seams.examine([Utterance(pcm=whole, packets=packets(whole, 1_000))], LIMITS.click_score_max)
    assert (alone.borders, alone.highest, alone.sensitivity) == (0, None, ())
    frames = seams.examine([Utterance(pcm=whole, packets=packets(whole, 1))], LIMITS.click_score_max)
    assert (frames.controls, frames.above) == (0, None)


def test_noise_and_silence_have_scores_too() -> None:
    for pcm in (noise(2.0), silence(2.0)):
        one = Utterance(pcm=pcm, packets=packets(pcm))
        assert seams.examine([one], LIMITS.click_score_max).clicks == 0
