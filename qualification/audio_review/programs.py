"""The figures that other programs give: SoX, a loudness meter, two models and a recogniser, each used where it is there.

What is missing takes nothing else with it: its reason is kept, and the checks that rest on it read `not_performed`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qualification import paths
from qualification.audio_review import loudness, models, sox
from qualification.audio_review.checks import LOUDNESS, RECOGNISER, SOX
from qualification.audio_review.dnsmos import DnsmosModel
from qualification.audio_review.figures import ClipReview, transcribed
from qualification.audio_review.models import FoundModel, Wave
from qualification.audio_review.policy import DNSMOS, VOICE, ReviewPolicy
from qualification.audio_review.recogniser import Recogniser, Request
from qualification.audio_review.voice import VoiceModel, activity
from qualification.audio_review.wave import read_wave
from qualification.errors import InputError
from qualification.evidence_view import EvidenceView

ASKED: Final = (SOX, LOUDNESS, VOICE, DNSMOS, RECOGNISER)
PACKAGES: Final = ("numpy", "scipy", "pyloudnorm", "onnxruntime")
Say = Callable[[str], None]


@dataclass(kw_only=True)
class Programs:
    """What was asked, what could not be, and what answered. `repeatable`: both runs of DNSMOS gave the same figures."""

    evidence: EvidenceView
    policy: ReviewPolicy
    recogniser: Recogniser | None
    without: frozenset[str]
    say: Say
    absent: dict[str, str] = field(default_factory=dict)
    models: list[FoundModel] = field(default_factory=list)
    sox_version: str | None = None
    repeatable: bool | None = None

    def ask(self, clips: Sequence[ClipReview]) -> tuple[ClipReview, ...]:
        """The utterances with every figure that could be had."""
        found = tuple(clips)
        steps = (self._sox, self._loudness, self._voice, self._dnsmos, self._recogniser)
        for name, step in zip(ASKED, steps, strict=True):
            if name in self.without:
                self.absent[name] = "Left out by the caller."
                continue
            self.say(f"audio review: {name}, {len(found)} utterances")
            try:
                found = step(found)
            except InputError as error:
                self.absent[name] = str(error)
        return found

    def versions(self) -> dict[str, str | None]:
        """Version of each program that is not a model; None where it is not there."""
        return {SOX: self.sox_version, **{name: version_of(name) for name in PACKAGES}}

    def _sox(self, clips: tuple[ClipReview, ...]) -> tuple[ClipReview, ...]:
        self.sox_version = sox.version()
        if self.sox_version is None:
            raise InputError("SoX is not installed; install the package `sox` of the system")
        return tuple(
            dataclasses.replace(clip, sox=sox.read(paths.locate(self.evidence.root, clip.path))) for clip in clips
        )

    def _loudness(self, clips: tuple[ClipReview, ...]) -> tuple[ClipReview, ...]:
        return tuple(dataclasses.replace(clip, loudness=self._of_pcm(clip, loudness.integrated)) for clip in clips)

    def _voice(self, clips: tuple[ClipReview, ...]) -> tuple[ClipReview, ...]:
        model = self._model(VOICE)
        hear, threshold = VoiceModel(model), self.policy.limits.voice_probability
        found = tuple(
            dataclasses.replace(
                clip, voice=self._of_wave(clip, lambda wave: activity(hear.probabilities(wave), threshold))
            )
            for clip in clips
        )
        self.models.append(model)
        return found

    def _dnsmos(self, clips: tuple[ClipReview, ...]) -> tuple[ClipReview, ...]:
        model = self._model(DNSMOS)
        runs = []
        for _ in range(2):
            rate = DnsmosModel(model)  # loaded again, so that nothing is left of the first run
            runs.append([self._of_wave(clip, rate.scores) for clip in clips])
        self.repeatable = runs[0] == runs[1]
        self.models.append(model)
        return tuple(dataclasses.replace(clip, dnsmos=scores) for clip, scores in zip(clips, runs[0], strict=True))

    def _recogniser(self, clips: tuple[ClipReview, ...]) -> tuple[ClipReview, ...]:
        if self.recogniser is None:
            raise InputError("no recogniser was mounted; give one with --recogniser")
        known = [clip for clip in clips if clip.language in self.recogniser.languages and clip.facts is not None]
        requests = [
            Request(id=clip.request_id, wav=paths.locate(self.evidence.root, clip.path), language=clip.language)
            for clip in known
        ]
        heard = self.recogniser.hear(requests) if requests else {}
        return tuple(self._with_words(clip, heard.get(clip.request_id)) for clip in clips)

    def _with_words(self, clip: ClipReview, heard: str | None) -> ClipReview:
        if heard is None:
            return clip
        text = self.evidence.workload.entry(clip.workload_id).text
        return dataclasses.replace(clip, **transcribed(clip, text, heard))

    def _model(self, name: str) -> FoundModel:
        if name not in self.policy.models:
            raise InputError(f"the policy pins no model for {name}; add its distribution, path, hash and licence")
        return models.find(self.policy.models[name])

    def _of_wave(self, clip: ClipReview, measure: Callable[[Wave], Any]) -> Any:
        """A figure of the utterance at 16 kHz; None where it cannot be read."""
        return self._of_pcm(clip, lambda pcm: measure(models.resample(pcm)))

    def _of_pcm(self, clip: ClipReview, measure: Callable[[npt.NDArray[np.int16]], Any]) -> Any:
        pcm = read_wave(paths.locate(self.evidence.root, clip.path).read_bytes()).pcm
        return None if pcm is None else measure(pcm)


def resampler() -> Mapping[str, Any] | None:
    """How utterances came to the rate of the models, or None without scipy."""
    version = version_of("scipy")
    return None if version is None else models.resampler(version)


def version_of(name: str) -> str | None:
    """Version of an installed distribution, or None."""
    try:
        return distribution(name).version
    except PackageNotFoundError:
        return None
