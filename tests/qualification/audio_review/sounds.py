"""Utterances to review: speech of espeak-ng as a stored request would hold it, and what can be done to it."""

from __future__ import annotations

import dataclasses
import io
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from qualification.audio_review.figures import ClipReview, clip_review
from qualification.audio_review.policy import load
from qualification.bench.raw import SAMPLES_PER_FRAME, Packet, RequestOutcome, RequestRecord
from qualification.clip import encode_wav
from qualification.workload import Kind, WorkloadEntry
from recipe.render import render
from recipe.sentence import Sentence
from recipe.voices import VOICES

REPOSITORY = Path(__file__).resolve().parents[3]
Pcm = npt.NDArray[np.int16]
POLICY = load()
TEXTS = (
    "The ferry leaves the old harbour at noon, and by evening the whole island smells of rain, bread and pine wood.",
    "Please leave the blue umbrella by the door, because the forecast says that it will rain again this afternoon.",
    "After the concert we walked along the river for an hour, talking about the music and our plans for the spring.",
)


VOICES_USED = (0, 12)


def speech(number: int = 0, voice: int = 0) -> Pcm:
    """[samples] of one of `TEXTS` in one of `VOICES_USED`; treat it as read-only."""
    return _rendered()[f"{number}-{voice}"]


@cache
def _rendered() -> dict[str, Pcm]:
    """Every utterance, from a process of its own: what espeak-ng says hangs on what it has said before.

    Voice 12 breathes, by chance: its samples differ from run to run."""
    ended = subprocess.run([sys.executable, "-m", __name__], cwd=REPOSITORY, capture_output=True, check=True)
    with np.load(io.BytesIO(ended.stdout)) as arrays:
        return {name: arrays[name] for name in arrays.files}


def noise(seconds: float, level: float = 0.1) -> Pcm:
    """White noise with that root mean square of full scale."""
    wave = np.random.default_rng(7).normal(0, level * 32_768, round(seconds * 24_000))
    return np.clip(wave, -32_768, 32_767).astype(np.int16)


def tone(seconds: float, level: float = 0.3, hertz: float = 200.0) -> Pcm:
    at = np.arange(round(seconds * 24_000)) / 24_000
    return np.round(level * 32_767 * np.sin(2 * np.pi * hertz * at)).astype(np.int16)


def silence(seconds: float) -> Pcm:
    return np.zeros(round(seconds * 24_000), dtype=np.int16)


def packets(pcm: Pcm, frames: int = 4) -> tuple[Packet, ...]:
    """Packets of `frames` codec frames, the last perhaps shorter."""
    size, bounds = frames * SAMPLES_PER_FRAME, range(0, pcm.size, frames * SAMPLES_PER_FRAME)
    return tuple(
        Packet(
            at_ns=number, sequence=number, first_frame=at // SAMPLES_PER_FRAME, first_sample=at,
            frames=min(frames, (pcm.size - at) // SAMPLES_PER_FRAME), samples=min(size, pcm.size - at),
            bytes=2 * min(size, pcm.size - at), final=at + size >= pcm.size,
        )
        for number, at in enumerate(bounds)
    )  # fmt: skip


def reviewed(
    pcm: Pcm,
    *,
    text: str = TEXTS[0],
    name: str = "one",
    seed: int = 1,
    language: str = "en",
    content: bytes | None = None,
) -> ClipReview:
    """The figures that follow from one utterance; `content` stands in for its file."""
    record = RequestRecord(
        request_id="5e551011-0000-4000-a000-000000000001", phase="measure", profile="EOS", load="sustained",
        concurrency=1, round=0, index=0, workload_id=name, language=language, seed=seed, outcome=RequestOutcome.OK,
        http_status=200, error_code=None, error_detail=None, scheduled_ns=0, t0_ns=0, headers_ns=1, end_ns=2,
        packets=packets(pcm), finish_reason="stop", echoed_seed=seed, samples=pcm.size, pcm_sha256=None,
        audio=f"audio/{name}.wav", server_metrics=None,
    )  # fmt: skip
    entry = WorkloadEntry(
        id=name, kind=Kind.COVERAGE, language=language, language_field="english", claimed_by_checkpoint=True, text=text,
        voice_description="A calm voice.", seeds=(seed,),
    )  # fmt: skip
    return clip_review(record, entry, encode_wav(pcm.tobytes()) if content is None else content, POLICY.limits)


def with_figures(clip: ClipReview, **figures: object) -> ClipReview:
    return dataclasses.replace(clip, **figures)  # type: ignore[arg-type]  # a test names them


if __name__ == "__main__":
    made = {
        f"{number}-{voice}": render(Sentence(language="en", text=text, spoken=text, voice=VOICES[voice]))
        for number, text in enumerate(TEXTS)
        for voice in VOICES_USED
    }
    np.savez(sys.stdout.buffer, **made)
