"""Are the stored utterances what was received, and is there something like speech in them?

Integrity: an exact WAV, the very bytes whose hash the raw record holds, long enough, not clipped, not silent. Speech
present: enough 20 ms windows have the loudness and sign changes of a voice, and loud windows stand beside quiet ones
as syllables and pauses do; silence, a constant, a steady tone and noise fail. Neither says anything about the words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from qualification.bench.raw import RequestRecord
from qualification.clip import Clip
from qualification.errors import BundleError
from qualification.evidence_view import EvidenceView
from qualification.gates.answers import Figure, answer, listed
from qualification.policy import AudioLimits, Policy
from qualification.results import Comparison, Derivation, GateResult, Outcome


@dataclass(frozen=True, kw_only=True)
class IntegrityGate:
    """Stored audio is the received audio, and it is audio."""

    id: str = "audio.integrity"

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult:
        """Check every stored file and every record that names one."""
        stored = _stored(evidence)
        if not stored:
            return _nothing(policy, self.id)
        limits = policy.rules_for(evidence.run["tier"]).limits.audio
        orphans = sorted(set(evidence.audio_files) - {record.audio for record in stored})
        faults = [f"{path}: no record names it" for path in orphans]
        for record in stored:
            faults += [f"{record.audio}: {fault}" for fault in _faults(record, evidence, limits)]
        if faults:
            return answer(policy, self.id, Outcome.FAILED, n=len(stored), detail=listed(faults))
        detail = (
            f"{len(stored)} stored utterances are exact, at least {limits.seconds_min:g} s, unclipped and not silent."
        )
        return answer(policy, self.id, Outcome.PASSED, n=len(stored), detail=detail, derivations=_DERIVATIONS)


@dataclass(frozen=True, kw_only=True)
class SpeechGate:
    """Each stored utterance sounds like a voice as far as loudness, sign changes and syllables go."""

    id: str = "audio.speech-present"

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult:
        """Compare the least share of voiced windows, and the variation of loudness, with their limits."""
        stored = _stored(evidence)
        if not stored:
            return _nothing(policy, self.id)
        limits = policy.rules_for(evidence.run["tier"]).limits.audio
        shares = {path: _voiced(evidence.clip(path), limits) for path in _paths(stored)}
        least = min(shares.values())
        faults = [f"{path}: {share:.0%} voiced" for path, share in shares.items() if share < limits.speech_fraction_min]
        faults += [
            f"{path}: equally loud throughout"
            for path in shares
            if not evidence.clip(path).varies(limits.speech_variation_min)
        ]
        figure = Figure(observed=least, limit=limits.speech_fraction_min, comparison=Comparison.AT_LEAST, unit="share")
        detail = (
            f"In each of {len(shares)} stored utterances at least {least:.0%} of the windows are voiced, in syllables."
        )
        if faults:
            detail = f"No speech: {listed(faults)}."
        outcome = Outcome.FAILED if faults else Outcome.PASSED
        return answer(policy, self.id, outcome, n=len(shares), detail=detail, figure=figure)


def _voiced(clip: Clip, limits: AudioLimits) -> float:
    return clip.voiced_fraction(
        rms_min=limits.speech_window_rms_min,
        crossings_min=limits.speech_crossings_min,
        crossings_max=limits.speech_crossings_max,
    )


_DERIVATIONS = (
    Derivation(file="audio/*.wav", field="pcm_sha256", estimator="count"),
    Derivation(file="audio/*.wav", field="clipped_fraction", estimator="max"),
    Derivation(file="audio/*.wav", field="peak", estimator="min"),
    Derivation(file="audio/*.wav", field="seconds", estimator="min"),
)


def _stored(evidence: EvidenceView) -> tuple[RequestRecord, ...]:
    return tuple(record for record in evidence.records(phase=None) if record.audio is not None)


def _paths(records: tuple[RequestRecord, ...]) -> Iterator[str]:
    for record in records:
        assert record.audio is not None  # chosen by _stored
        yield record.audio


def _faults(record: RequestRecord, evidence: EvidenceView, limits: AudioLimits) -> Iterator[str]:
    assert record.audio is not None  # chosen by _stored
    try:
        clip = evidence.clip(record.audio)
    except BundleError as error:
        yield str(error)
        return
    yield from _mismatches(record, clip)
    if clip.seconds < limits.seconds_min:
        yield f"{clip.seconds:.2f} s long, at least {limits.seconds_min:g} s expected"
    if clip.clipped_fraction > limits.clipped_fraction_max:
        yield f"{clip.clipped_fraction:.2%} of its samples are clipped"
    if clip.peak < limits.peak_min:
        yield f"its peak is {clip.peak:.4f} of full scale: silence"


def _mismatches(record: RequestRecord, clip: Clip) -> Iterator[str]:
    if clip.pcm_sha256 != record.pcm_sha256:
        yield "its samples are not those that were received"
    if clip.samples != record.samples:
        yield f"{clip.samples} samples stored, {record.samples} received"


def _nothing(policy: Policy, gate: str) -> GateResult:
    detail = "The run stored no utterance."
    return answer(policy, gate, Outcome.NOT_PERFORMED, n=0, detail=detail, reason_code="no_stored_audio")
