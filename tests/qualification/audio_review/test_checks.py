"""Each check passes good utterances, fails on the one bad utterance made for it, and says when it was not performed."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from qualification.audio_review.checks import Found, judge
from qualification.audio_review.dnsmos import Scores
from qualification.audio_review.figures import ClipReview, transcribed
from qualification.audio_review.policy import Reference, ReviewPolicy
from qualification.audio_review.seams import Utterance, examine, plant
from qualification.audio_review.sox import ENCODING, SoxFacts
from qualification.audio_review.voice import Activity
from qualification.clip import encode_wav
from qualification.errors import InputError
from qualification.results import GateResult, Outcome
from tests.qualification.audio_review.sounds import POLICY, TEXTS, Pcm, packets, reviewed, silence, speech

RECOGNISER = {"languages": [{"language": "en", "clean_error_rate": 0.1, "how": "said so, for a test"}]}
SUBJECT = "model (reference)"


def complete(pcm: Pcm, number: int = 0, **more: Any) -> ClipReview:
    """An utterance with good answers of every program."""
    clip = reviewed(pcm, text=TEXTS[number], name=f"sentence-{number}", **more)
    facts = clip.facts
    if facts is None:
        return clip
    sox = SoxFacts(
        rate_hz=24_000, channels=1, bits=16, samples=facts.samples, encoding=ENCODING, pcm_sha256=facts.pcm_sha256,
        warnings=0,
    )  # fmt: skip
    scores = Scores(signal=3.0, background=4.0, overall=2.5)
    good = {"sox": sox, "loudness": -20.0, "voice": Activity(share=0.9, seconds=5.0), "dnsmos": scores}
    return dataclasses.replace(clip, **good, **transcribed(clip, TEXTS[number], TEXTS[number]))  # type: ignore[arg-type]


GOOD = tuple(complete(speech(number), number) for number in range(3))
SEAMS = examine(
    [Utterance(pcm=speech(number), packets=packets(speech(number))) for number in range(3)],
    POLICY.limits.click_score_max,
)
REFERRED = dataclasses.replace(
    POLICY, references={SUBJECT: Reference(subject=SUBJECT, overall_median=2.4, n=3, source="made for a test")}
)


def found(*clips: ClipReview, **more: Any) -> Found:
    values: dict[str, Any] = {
        "clips": clips, "seams": SEAMS, "absent": {}, "subject": SUBJECT, "repeatable": True, "recogniser": RECOGNISER,
    }  # fmt: skip
    return Found(**{**values, **more})


def answers(seen: Found, policy: ReviewPolicy = REFERRED) -> dict[str, GateResult]:
    return {result.id.partition(".")[2]: result for result in judge(policy, seen)}


def outcome(check: str, seen: Found, policy: ReviewPolicy = REFERRED) -> Outcome:
    return answers(seen, policy)[check].outcome


def test_good_speech_passes_every_check() -> None:
    enough = dataclasses.replace(SEAMS, borders=400, above=20)  # three utterances are too few for the bound
    results = answers(found(*GOOD, seams=enough))
    assert {name: result.outcome for name, result in results.items()} == dict.fromkeys(results, Outcome.PASSED)
    assert len(results) == len(POLICY.checks) == 15
    assert all(result.n >= 1 and result.derivations for result in results.values())


def _with_dc(pcm: Pcm) -> Pcm:
    return np.clip(pcm.astype(np.int32) + 1_000, -32_768, 32_767).astype(np.int16)


def _clipped(pcm: Pcm) -> Pcm:
    return np.clip(pcm.astype(np.int32) * 8, -32_768, 32_767).astype(np.int16)


BAD = {
    "clipped": (lambda pcm: _clipped(pcm), "level"),
    "silent": (lambda pcm: silence(2.0), "level"),
    "quiet": (lambda pcm: (pcm // 200).astype(np.int16), "level"),
    "offset": (_with_dc, "offset"),
    "silence before": (lambda pcm: np.concatenate([silence(0.8), pcm]), "silence"),
    "silence after": (lambda pcm: np.concatenate([pcm, silence(2.0)]), "silence"),
    "a hole": (lambda pcm: np.concatenate([pcm[:60_000], silence(2.0), pcm[60_000:]]), "silence"),
    "cut short": (lambda pcm: pcm[:36_000], "pace"),
    "far too slow": (lambda pcm: np.repeat(pcm, 3), "pace"),
    "looped": (lambda pcm: np.concatenate([pcm[:60_000], *[pcm[36_000:60_000]] * 4]), "loops"),
    "duplicated": (lambda pcm: speech(1), "duplicates"),
}


@pytest.mark.parametrize("name", BAD)
def test_one_bad_utterance_fails_its_check(name: str) -> None:
    change, check = BAD[name]
    bad = complete(change(speech()))
    result = answers(found(bad, *GOOD[1:]))[check]
    assert result.outcome is Outcome.FAILED
    assert bad.path in result.detail


def test_files_that_are_no_exact_wav_fail() -> None:
    whole = encode_wav(speech().tobytes())
    floats = whole[:20] + b"\x03" + whole[21:34] + b"\x20" + whole[35:44] + np.full(8, np.nan, "<f4").tobytes()
    cut = complete(speech(), content=whole[: len(whole) // 2])
    assert outcome("exact", found(cut, *GOOD[1:])) is Outcome.FAILED
    odd = complete(speech(), content=floats)
    results = answers(found(odd, *GOOD[1:]))
    assert (odd.non_finite, odd.facts) == (8, None)
    assert results["finite"].outcome is results["exact"].outcome is results["second-reader"].outcome is Outcome.FAILED
    assert results["level"].n == 2  # what cannot be read is not counted as checked


@pytest.mark.parametrize("change", [{"rate_hz": 48_000}, {"samples": 5}, {"pcm_sha256": "0" * 64}, {"warnings": 1}])
def test_a_second_reader_who_disagrees_fails(change: dict[str, Any]) -> None:
    sox = GOOD[0].sox
    assert sox is not None
    bad = dataclasses.replace(GOOD[0], sox=dataclasses.replace(sox, **change))
    assert outcome("second-reader", found(bad, *GOOD[1:])) is Outcome.FAILED
    assert outcome("second-reader", found(dataclasses.replace(GOOD[0], sox=None))) is Outcome.FAILED


def test_figures_of_programs_are_held_against_their_limits() -> None:
    loud = dataclasses.replace(GOOD[0], loudness=-3.0)
    unheard = dataclasses.replace(GOOD[0], voice=Activity(share=0.1, seconds=0.5))
    assert outcome("loudness", found(loud, *GOOD[1:])) is Outcome.FAILED
    assert outcome("loudness", found(dataclasses.replace(GOOD[0], loudness=None))) is Outcome.FAILED
    assert outcome("voice", found(unheard, *GOOD[1:])) is Outcome.FAILED


def test_clicks_fail_one_by_one_or_as_a_whole() -> None:
    limit = POLICY.limits.click_score_max
    pcm, parts = speech(), packets(speech())
    borders = [part.first_sample for part in parts[1:]]
    one = examine([Utterance(pcm=plant(pcm, borders[3:4], 0.3), packets=parts)], limit)
    every = examine([Utterance(pcm=plant(pcm, borders, 0.0125), packets=parts)], limit)
    assert outcome("clicks", found(*GOOD, seams=one)) is Outcome.FAILED
    assert outcome("borders", found(*GOOD, seams=every)) is Outcome.FAILED
    assert (
        outcome("borders", found(*GOOD, seams=dataclasses.replace(SEAMS, borders=20, above=0))) is Outcome.INCONCLUSIVE
    )


def test_dnsmos_is_compared_with_a_reference_and_with_itself() -> None:
    assert outcome("drift", found(*GOOD, repeatable=False)) is Outcome.ERROR
    assert outcome("drift", found(*GOOD, subject="another (unverified)")) is Outcome.NOT_PERFORMED
    worse = [dataclasses.replace(clip, dnsmos=Scores(signal=2.0, background=2.0, overall=1.9)) for clip in GOOD]
    assert outcome("drift", found(*worse)) is Outcome.FAILED


def test_words_are_judged_by_what_the_recogniser_gets_wrong_anyway() -> None:
    wrong = [dataclasses.replace(clip, **transcribed(clip, TEXTS[0], "no such words at all")) for clip in GOOD]
    weak = {"languages": [{**RECOGNISER["languages"][0], "clean_error_rate": 0.8}]}
    assert outcome("words", found(*wrong)) is Outcome.FAILED
    assert outcome("words", found(*wrong, recogniser=weak)) is Outcome.INCONCLUSIVE
    assert outcome("words", found(*GOOD, recogniser=None)) is Outcome.NOT_PERFORMED


@pytest.mark.parametrize(
    ("program", "check"),
    [("sox", "second-reader"), ("loudness", "loudness"), ("voice", "voice"), ("dnsmos", "drift")],
)
def test_a_program_that_is_not_there_leaves_its_check_undone(program: str, check: str) -> None:
    result = answers(found(*GOOD, absent={program: "It is not installed."}))[check]
    assert (result.outcome, result.n, result.detail) == (Outcome.NOT_PERFORMED, 0, "It is not installed.")
    assert result.needed
    assert result.owner


def test_a_check_that_does_not_exist_is_named() -> None:
    other = dataclasses.replace(POLICY.checks[0], id="audio-review.beauty")
    with pytest.raises(InputError, match=r"audio-review\.beauty; this version has audio-review\.exact"):
        judge(dataclasses.replace(POLICY, checks=(other,)), found(*GOOD))


def test_languages_without_a_range_are_named() -> None:
    other = complete(speech(), language="mul")
    assert "Without a known range: mul" in answers(found(other, *GOOD[1:]))["pace"].detail
    assert outcome("pace", found(other)) is Outcome.NOT_PERFORMED
