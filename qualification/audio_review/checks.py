"""The checks of the audio review: pure functions of the figures, so that the verifier answers them again.

One function a check, each over all utterances; none knows of another. A figure that no utterance has makes the check
`not_performed`, with the reason that the program gave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from qualification.audio_review.answering import Answer, each, figure, nothing, whole
from qualification.audio_review.figures import ClipReview
from qualification.audio_review.policy import DNSMOS, VOICE, ReviewPolicy
from qualification.audio_review.seams import Seams
from qualification.audio_review.sox import ENCODING
from qualification.bench import statistics
from qualification.bench.raw import SAMPLE_RATE_HZ
from qualification.errors import InputError
from qualification.results import Comparison, GateResult, Outcome

SOX, LOUDNESS, RECOGNISER = "sox", "loudness", "recogniser"


@dataclass(frozen=True, kw_only=True)
class Found:
    """Everything that the checks look at.

    Attributes:
        absent: program -> why it gave no figure.
        subject: name and tier of the model that spoke, as identity.json has it.
        repeatable: whether both runs of DNSMOS were equal; None where there was none.
        recogniser: what the record says of it, or None.
    """

    clips: tuple[ClipReview, ...]
    seams: Seams
    absent: Mapping[str, str]
    subject: str
    repeatable: bool | None
    recogniser: Mapping[str, Any] | None


def judge(policy: ReviewPolicy, found: Found) -> tuple[GateResult, ...]:
    """Every check of the policy, in its order.

    Raises:
        InputError: the policy names a check that does not exist here.
    """
    unknown = sorted({entry.id for entry in policy.checks} - _CHECKS.keys())
    if unknown:
        raise InputError(
            f"no such check of the audio review: {', '.join(unknown)}; this version has {', '.join(_CHECKS)}"
        )
    return tuple(_CHECKS[entry.id](Answer(policy=policy, entry=entry), found) for entry in policy.checks)


def _exact(answer: Answer, found: Found) -> GateResult:
    return each(answer, found.clips, lambda clip: "; ".join(clip.faults) or None, "faults", "count")


def _second_reader(answer: Answer, found: Found) -> GateResult:
    if SOX in found.absent:
        return nothing(answer, "no_second_reader", found.absent[SOX])
    return each(answer, found.clips, _sox_differs, "sox", "count")


def _sox_differs(clip: ClipReview) -> str | None:
    facts, sox = clip.facts, clip.sox
    if sox is None:
        return "SoX cannot read it"
    if facts is None or (sox.samples, sox.pcm_sha256) != (facts.samples, facts.pcm_sha256):
        return f"SoX decodes other samples ({sox.samples} by its header)"
    if (sox.rate_hz, sox.channels, sox.bits, sox.encoding) != (SAMPLE_RATE_HZ, 1, 16, ENCODING):
        return f"SoX reads {sox.rate_hz} Hz, {sox.channels} channels, {sox.bits} bits, {sox.encoding}"
    return f"SoX complains {sox.warnings} times" if sox.warnings else None


def _finite(answer: Answer, found: Found) -> GateResult:
    return each(
        answer, found.clips, lambda clip: f"{clip.non_finite} samples" if clip.non_finite else None, "non_finite", "max"
    )


def _level(answer: Answer, found: Found) -> GateResult:
    limits = answer.policy.limits

    def fault(clip: ClipReview) -> str | None:
        facts = clip.facts
        if facts is None:
            return None
        if facts.peak < limits.peak_min:
            return f"peak {facts.peak:.4f}"
        if facts.clipped > limits.clipped_fraction_max * facts.samples or facts.clipped_run > limits.clipped_run_max:
            return f"{facts.clipped} samples at full scale, {facts.clipped_run} in a row"
        return None

    return each(answer, _read(found), fault, "clipped_run", "max")


def _offset(answer: Answer, found: Found) -> GateResult:
    values = {clip.path: abs(clip.facts.offset) for clip in found.clips if clip.facts}
    return whole(answer, values, "offset", "share", at_most=answer.policy.limits.offset_max)


def _silence(answer: Answer, found: Found) -> GateResult:
    limits = answer.policy.limits

    def fault(clip: ClipReview) -> str | None:
        facts = clip.facts
        if facts is None:
            return None
        for name, seconds, most in (
            ("before", facts.leading_silence, limits.leading_silence_max),
            ("after", facts.trailing_silence, limits.trailing_silence_max),
            ("inside", facts.longest_pause, limits.pause_max),
        ):
            if seconds > most:
                return f"{seconds:.2f} s of silence {name}"
        return None

    return each(answer, _read(found), fault, "trailing_silence", "max")


def _loudness(answer: Answer, found: Found) -> GateResult:
    if LOUDNESS in found.absent:
        return nothing(answer, "no_loudness_meter", found.absent[LOUDNESS])
    low, high = answer.policy.limits.loudness_min, answer.policy.limits.loudness_max

    def fault(clip: ClipReview) -> str | None:
        if clip.loudness is None:
            return "too short or too quiet to be measured"
        return None if low <= clip.loudness <= high else f"{clip.loudness:.1f} LUFS"

    return each(answer, _read(found), fault, "loudness", "median")


def _voice(answer: Answer, found: Found) -> GateResult:
    if VOICE in found.absent:
        return nothing(answer, "no_voice_model", found.absent[VOICE])
    values = {clip.path: clip.voice.share for clip in found.clips if clip.voice}
    return whole(answer, values, "voice_share", "share", at_least=answer.policy.limits.voice_share_min)


def _pace(answer: Answer, found: Found) -> GateResult:
    ranges = answer.policy.pace
    known = [clip for clip in found.clips if clip.language in ranges]
    if not known:
        return nothing(answer, "no_known_range", "No language of the stored utterances has a known range.")

    def fault(clip: ClipReview) -> str | None:
        usual = ranges[clip.language]
        if clip.pace is None:
            return "no speech whose pace could be told"
        return None if usual.low <= clip.pace <= usual.high else f"{clip.pace:.1f} a second in {clip.language}"

    unknown = sorted({clip.language for clip in found.clips} - ranges.keys())
    aside = f" Without a known range: {', '.join(unknown)}." if unknown else ""
    return each(answer, known, fault, "pace", "median", aside)


def _duplicates(answer: Answer, found: Found) -> GateResult:
    heard: dict[str, set[tuple[str, int]]] = {}
    for clip in found.clips:
        if clip.facts:
            heard.setdefault(clip.facts.pcm_sha256, set()).add((clip.workload_id, clip.seed))
    return each(
        answer,
        _read(found),
        lambda clip: "samples of another sentence or seed" if clip.facts and len(heard[clip.facts.pcm_sha256]) > 1 else None,
        "pcm_sha256",
        "unique",
    )  # fmt: skip


def _loops(answer: Answer, found: Found) -> GateResult:
    values = {clip.path: clip.repetition.similarity for clip in found.clips if clip.repetition}
    return whole(answer, values, "similarity", "share", at_most=answer.policy.limits.similarity_max)


def _clicks(answer: Answer, found: Found) -> GateResult:
    seams = found.seams
    if seams.highest is None:
        return nothing(answer, "no_border", "No stored utterance came in more than one packet.")
    limit = answer.policy.limits.click_score_max
    told = next((item.size for item in seams.sensitivity if item.found >= 0.95 * item.planted), None)
    detail = f"{seams.clicks} of {seams.borders} borders score above {limit:g}. Of planted clicks 95 % are found " + (
        f"from {told:.1%} of full scale on." if told else "at no size that was tried."
    )
    outcome = Outcome.FAILED if seams.clicks else Outcome.PASSED
    return answer.give(
        outcome, n=seams.borders, detail=detail, field="border_score", estimator="max",
        figure=figure(seams.highest, limit, Comparison.AT_MOST, "score"),
    )  # fmt: skip


def _borders(answer: Answer, found: Found) -> GateResult:
    seams = found.seams
    if not seams.borders or seams.above is None:
        return nothing(answer, "no_control", "No packet border, or no frame border inside a packet to compare with.")
    limit, share = answer.policy.limits.border_share_max, seams.above / seams.borders
    bound = statistics.share_upper95(seams.above, seams.borders)
    told = next((item.size for item in seams.sensitivity if (item.share_above or 0) > limit), None)
    detail = (
        f"{share:.1%} of {seams.borders} packet borders lie beyond 95 % of {seams.controls} frame borders inside packets. "
        + (f"A click of {told:.1%} of full scale at every border would exceed the limit." if told else "")
    ).rstrip()
    return answer.decide(
        n=seams.borders, detail=detail, field="border_score", estimator="share",
        figure=figure(share, limit, Comparison.AT_MOST, "share", bound),
    )  # fmt: skip


def _drift(answer: Answer, found: Found) -> GateResult:
    values = [clip.dnsmos.overall for clip in found.clips if clip.dnsmos]
    if DNSMOS in found.absent or not values:
        return nothing(answer, "no_dnsmos_model", found.absent.get(DNSMOS, "No utterance could be rated."))
    if not found.repeatable:
        return answer.give(
            Outcome.ERROR, n=0, detail="Two runs of the model differ; its figures mean nothing here.", field="dnsmos"
        )
    median = statistics.median(values)
    reference = answer.policy.references.get(found.subject)
    if reference is None:
        detail = f"Median {median:.2f} over {len(values)} utterances, twice the same; nothing to compare {found.subject} with."
        return nothing(answer, "no_reference", detail)
    drift, limit = abs(median - reference.overall_median), answer.policy.limits.drift_max
    detail = (
        f"Median {median:.2f} over {len(values)} utterances, twice the same; {reference.overall_median:.2f} was kept."
    )
    return answer.give(
        Outcome.PASSED if drift <= limit else Outcome.FAILED, n=len(values), detail=detail, field="dnsmos_overall",
        estimator="median", figure=figure(drift, limit, Comparison.AT_MOST, "rating"),
    )  # fmt: skip


def _words(answer: Answer, found: Found) -> GateResult:
    languages = found.recogniser["languages"] if found.recogniser else ()
    clean = {item["language"]: item["clean_error_rate"] for item in languages}
    heard = [clip for clip in found.clips if clip.word_edits is not None and clip.language in clean]
    if not heard:
        return nothing(answer, "no_recogniser", found.absent.get(RECOGNISER, "It knows no language of the utterances."))
    limits = answer.policy.limits
    usable = [clip for clip in heard if clean[clip.language] <= limits.clean_error_max]
    if not usable:
        detail = "The recogniser errs too often on clean speech to decide anything."
        return answer.give(
            Outcome.INCONCLUSIVE, n=len(heard), detail=detail, field="word_edits", reason="weak_recogniser"
        )
    rates = {language: _error_rate(usable, language) for language in sorted({clip.language for clip in usable})}
    excess = {language: rate - clean[language] for language, rate in rates.items()}
    worst = max(excess.values())
    detail = "Errors, and on clean speech: " + ", ".join(
        f"{language} {rate:.0%} ({clean[language]:.0%})" for language, rate in rates.items()
    )
    return answer.give(
        Outcome.PASSED if worst <= limits.error_margin else Outcome.FAILED, n=len(usable), detail=f"{detail}.",
        field="word_edits", estimator="share", figure=figure(worst, limits.error_margin, Comparison.AT_MOST, "share"),
    )  # fmt: skip


def _error_rate(clips: Sequence[ClipReview], language: str) -> float:
    own = [clip for clip in clips if clip.language == language]
    return sum(clip.word_edits or 0 for clip in own) / max(1, sum(clip.words or 0 for clip in own))


def _read(found: Found) -> tuple[ClipReview, ...]:
    return tuple(clip for clip in found.clips if clip.facts is not None)


Check = Callable[[Answer, Found], GateResult]
_CHECKS: Final[Mapping[str, Check]] = {
    "audio-review.exact": _exact,
    "audio-review.second-reader": _second_reader,
    "audio-review.finite": _finite,
    "audio-review.level": _level,
    "audio-review.offset": _offset,
    "audio-review.silence": _silence,
    "audio-review.loudness": _loudness,
    "audio-review.voice": _voice,
    "audio-review.pace": _pace,
    "audio-review.duplicates": _duplicates,
    "audio-review.loops": _loops,
    "audio-review.clicks": _clicks,
    "audio-review.borders": _borders,
    "audio-review.drift": _drift,
    "audio-review.words": _words,
}
