"""Every figure of one stored utterance, and those that follow from its samples, its packets and its text alone.

The latter the verifier computes again with numpy; those of SoX, of a library, of a model or of a recogniser are a report
of what that program said, and `audio-review --check` asks it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from qualification import paths
from qualification.audio_review import loops, seams
from qualification.audio_review.dnsmos import Scores
from qualification.audio_review.facts import Facts, measure
from qualification.audio_review.loops import Repetition
from qualification.audio_review.policy import Limits
from qualification.audio_review.seams import Seams, Utterance
from qualification.audio_review.sox import SoxFacts
from qualification.audio_review.spelling import edits, spoken_characters, units
from qualification.audio_review.voice import Activity
from qualification.audio_review.wave import read_wave
from qualification.bench.raw import RequestRecord
from qualification.digest import sha256_bytes
from qualification.evidence_view import EvidenceView
from qualification.workload import WorkloadEntry


@dataclass(frozen=True, kw_only=True)
class ClipReview:
    """One stored utterance. A figure is None where it could not be had.

    Attributes:
        characters: spoken characters of its text; pace: of them a second, without silence at the ends.
        faults: ways in which the file is no exact WAV; facts and repetition are None for a file that is no mono 24 kHz
            16-bit PCM.
        words, word_edits: of the text, and how many of them the recogniser's answer has wrong, missing or added.
    """

    path: str
    sha256: str
    request_id: str
    workload_id: str
    language: str
    seed: int
    characters: int
    faults: tuple[str, ...]
    non_finite: int
    facts: Facts | None
    repetition: Repetition | None
    sox: SoxFacts | None = None
    loudness: float | None = None
    voice: Activity | None = None
    dnsmos: Scores | None = None
    heard: str | None = None
    words: int | None = None
    word_edits: int | None = None

    @property
    def pace(self) -> float | None:
        if self.facts is None or self.facts.spoken_seconds <= 0:
            return None
        return self.characters / self.facts.spoken_seconds

    def to_json(self) -> dict[str, Any]:
        """The object of the record."""
        return {**asdict(self), "faults": list(self.faults), "pace": self.pace}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> ClipReview:
        """Read an object that the `audio-review` schema has accepted."""
        values = {key: value for key, value in document.items() if key != "pace"}
        values["faults"] = tuple(values["faults"])
        for key, kind in _PARTS.items():
            values[key] = None if values[key] is None else kind(**values[key])
        return cls(**values)


_PARTS: Mapping[str, Any] = {
    "facts": Facts, "repetition": Repetition, "sox": SoxFacts, "voice": Activity, "dnsmos": Scores,
}  # fmt: skip


def stored(evidence: EvidenceView) -> Iterator[tuple[RequestRecord, bytes]]:
    """Each record that has a stored utterance, with the bytes of its file, sorted by path; warm-up included."""
    named = {record.audio: record for record in evidence.all_records if record.audio is not None}
    for path, record in sorted(named.items()):
        yield record, paths.locate(evidence.root, path).read_bytes()


def from_samples(evidence: EvidenceView, limits: Limits) -> tuple[tuple[ClipReview, ...], Seams]:
    """Every figure that needs no program but this one. Raises as `EvidenceView` does."""
    clips, utterances = [], []
    for record, content in stored(evidence):
        wave = read_wave(content)
        clips.append(clip_review(record, evidence.workload.entry(record.workload_id), content, limits))
        if wave.pcm is not None:
            utterances.append(Utterance(pcm=wave.pcm, packets=record.packets))
    return tuple(clips), seams.examine(utterances, limits.click_score_max)


def transcribed(clip: ClipReview, text: str, heard: str) -> dict[str, Any]:
    """The fields `heard`, `words` and `word_edits` of an utterance of `text`."""
    expected = units(text, clip.language)
    return {"heard": heard, "words": len(expected), "word_edits": edits(expected, units(heard, clip.language))}


def clip_review(record: RequestRecord, entry: WorkloadEntry, content: bytes, limits: Limits) -> ClipReview:
    """What follows from one stored file, its record and its text; the record names a stored utterance."""
    assert record.audio is not None  # chosen by `stored`
    wave = read_wave(content)
    return ClipReview(
        path=record.audio,
        sha256=sha256_bytes(content),
        request_id=record.request_id,
        workload_id=record.workload_id,
        language=record.language,
        seed=record.seed,
        characters=spoken_characters(entry.text),
        faults=wave.faults,
        non_finite=wave.non_finite,
        facts=None if wave.pcm is None else measure(wave.pcm, limits.silence_rms),
        repetition=None if wave.pcm is None else loops.strongest(wave.pcm),
    )
