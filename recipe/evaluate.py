"""The model through the engine, on sentences that it never saw, against espeak-ng's own rendering of them.

Held out are the workload's coverage sentences: natural language, one a language, while training saw random words
only. Every run is kept in the record with
its measures, so that the summary can be computed again. What is not measured: intelligibility, and how pleasant it is
to listen to.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

import numpy as np

from engine.contract import AudioPacket, SpeechEnd, SpeechFailure, SpeechRequest, StopReason
from engine.errors import CapacityExhausted
from engine.settings import EngineSettings
from engine.synthesizer import Synthesizer
from recipe.corpus import Samples, write_record
from recipe.errors import RecipeError
from recipe.export import file_hashes
from recipe.measures import Measures, measure
from recipe.render import render
from recipe.sentence import Sentence
from recipe.settings import Settings
from recipe.text import spoken_form
from recipe.voices import nearest_voice

WORKLOAD = Path("qualification/data/workload.json")
EVALUATION = "evaluation.json"
ROWS = 12
PROMPT_POSITIONS = 512
NATURAL_ENDS_SHARE = 118 / 120
DURATION_RATIO = (0.5, 2.0)
SPEECH_SHARE = 0.3
LEVEL_RATIO = (0.5, 2.0)  # RMS against espeak-ng's
PITCH_STEP = 1.2  # high against low
VOICED_AGAINST_REFERENCE = 0.5
PITCH_PROBES = ("low female", "high female", "low male")
PROBE_LANGUAGES = ("zh", "en", "ja", "ko", "de", "fr", "ru", "pt", "es", "it")
PROBES = {
    "low female": "A female voice with a low pitch, speaking at a medium pace.",
    "high female": "A female voice with a high pitch, speaking at a medium pace.",
    "low male": "A male voice with a low pitch, speaking at a medium pace.",
    "slow": "A female voice with a medium pitch, speaking slowly.",
    "fast": "A female voice with a medium pitch, speaking quickly.",
}


@dataclass(frozen=True, kw_only=True)
class Job:
    """One utterance to make."""

    entry: str
    language: str
    field: str
    text: str
    description: str
    seed: int

    @property
    def sentence(self) -> Sentence:
        """The same utterance for espeak-ng."""
        return Sentence(
            language=self.language, text=self.text, spoken=spoken_form(self.text, self.language),
            voice=nearest_voice(self.description),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Run:
    """One utterance made, its measures and those of espeak-ng's rendering."""

    job: Job
    natural_end: bool
    made: Measures
    reference: Measures

    @property
    def duration_ratio(self) -> float:
        return self.made.seconds / self.reference.seconds

    @property
    def level_ratio(self) -> float:
        return self.made.rms / self.reference.rms


def evaluate_model(settings: Settings, directory: Path, report: Callable[[str], None]) -> None:
    """Speak the held-out sentences and the voice probes; write the record.

    Raises:
        RecipeError: the workload is not there, or a request failed.
    """
    frames = settings.evaluate.frames
    jobs, probes = held_out_jobs(WORKLOAD, settings.evaluate.seeds), probe_jobs(WORKLOAD)
    engine = Synthesizer(
        EngineSettings(
            model=directory,
            device=settings.device,
            rows=ROWS,
            positions=frames + PROMPT_POSITIONS,
            max_frames=frames,
        )
    )
    engine.start()
    try:
        started = time.monotonic()
        runs = speak_all(engine, jobs, frames, report)
        probe_runs = speak_all(engine, probes, frames, report)
        seconds = time.monotonic() - started
        info = engine.info
    finally:
        engine.close(grace_seconds=0.0)
    summary = summarise(runs, probe_runs)
    audio = sum(run.made.seconds for run in (*runs, *probe_runs))
    write_record(
        settings.work / EVALUATION,
        {
            "summary": summary,
            "limits": {
                "natural_ends_share": NATURAL_ENDS_SHARE, "duration_ratio": DURATION_RATIO,
                "speech_share": SPEECH_SHARE,
                "level_ratio": LEVEL_RATIO, "frames": frames,
            },
            "engine": {"device": info.device, "precision": info.precision, "rows": ROWS, "machine": platform.machine()},
            "files": file_hashes(directory),
            "wall_seconds": round(seconds, 1),
            "audio_seconds": round(audio, 1),
            "runs": [asdict(run) for run in runs],
            "probes": [asdict(run) for run in probe_runs],
        },
    )  # fmt: skip
    for name, value in summary.items():
        report(f"{name}: {value}")


def held_out_jobs(workload: Path, seeds: int) -> list[Job]:
    """Every coverage sentence with its own voice description and its first seeds."""
    return [
        _job(entry, entry["voice_description"], seed)
        for entry in _coverage(workload)
        for seed in entry["seeds"][:seeds]
    ]


def probe_jobs(workload: Path) -> list[Job]:
    """The sentences of ten languages in five voices, one seed each."""
    return [
        _job(entry, description, entry["seeds"][0])
        for entry in _coverage(workload)
        if entry["language"] in PROBE_LANGUAGES
        for description in PROBES.values()
    ]


def _pitch_failures(summary: dict[str, Any]) -> list[str]:
    low, high = (summary["median_pitch_hz"][name]["model"] for name in ("low female", "high female"))
    failures = []
    if low is None or high is None or high <= PITCH_STEP * low:
        failures.append(f"a high female voice ({high} Hz) is not clearly higher than a low one ({low} Hz)")
    for name, share in summary["voiced_share"].items():
        if share["model"] < VOICED_AGAINST_REFERENCE * share["espeak"]:
            failures.append(
                f"the {name} voice is hoarse: {share['model']} of its loud frames are voiced, "
                f"{share['espeak']} of espeak-ng's"
            )
    return failures


def speak_all(engine: Synthesizer, jobs: list[Job], frames: int, report: Callable[[str], None]) -> list[Run]:
    """Speak `jobs` through the engine, as many at a time as it has rows."""
    runs: list[Run] = []
    with ThreadPoolExecutor(max_workers=ROWS) as pool:
        spoken = pool.map(lambda job: _speak(engine, job, frames), jobs)
        for job, (pcm, reason) in zip(jobs, spoken, strict=True):  # espeak-ng speaks in this thread alone
            reference = measure(render(job.sentence))
            runs.append(Run(job=job, natural_end=reason is StopReason.EOS, made=measure(pcm), reference=reference))
            if len(runs) % 10 == 0 or len(runs) == len(jobs):
                ended = sum(item.natural_end for item in runs)
                report(f"{len(runs)}/{len(jobs)} spoken, {ended} ended by themselves")
    return runs


def summarise(runs: list[Run], probes: list[Run]) -> dict[str, Any]:
    """The figures of the model card."""
    ratios = sorted(run.duration_ratio for run in runs)
    levels = sorted(run.level_ratio for run in runs)
    slow, fast = (_seconds(probes, PROBES[name]) for name in ("slow", "fast"))
    return {
        "runs": len(runs),
        "languages": len({run.job.language for run in runs}),
        "natural_ends": sum(run.natural_end for run in runs),
        "duration_ratio_min_median_max": [round(ratios[0], 3), round(median(ratios), 3), round(ratios[-1], 3)],
        "durations_within_limits": sum(DURATION_RATIO[0] <= ratio <= DURATION_RATIO[1] for ratio in ratios),
        "speech_share_min": round(min(run.made.speech_share for run in runs), 3),
        "with_speech": sum(run.made.speech_share >= SPEECH_SHARE for run in runs),
        "clipped_samples": sum(run.made.clipped for run in runs),
        "level_ratio_min_median_max": [round(levels[0], 3), round(median(levels), 3), round(levels[-1], 3)],
        "levels_within_limits": sum(LEVEL_RATIO[0] <= level <= LEVEL_RATIO[1] for level in levels),
        "median_pitch_hz": {name: _pitch(_of(probes, PROBES[name])) for name in PITCH_PROBES},
        "voiced_share": {name: _voiced(_of(probes, PROBES[name])) for name in PITCH_PROBES},
        "median_seconds_slow": slow,
        "median_seconds_fast": fast,
        "median_slow_to_fast_ratio": _slow_to_fast(probes),
    }


def verdict(summary: dict[str, Any]) -> list[str]:
    """What the summary fails, in words; empty when the model is good enough to ship."""
    count = _number(summary, "runs")
    failures = []
    if _number(summary, "natural_ends") < NATURAL_ENDS_SHARE * count:
        failures.append(f"only {summary['natural_ends']} of {count} runs ended by themselves")
    for name in ("durations_within_limits", "with_speech", "levels_within_limits"):
        if _number(summary, name) < count:
            failures.append(f"{name} holds for {summary[name]} of {count} runs")
    if _number(summary, "clipped_samples") > 0:
        failures.append(f"{summary['clipped_samples']} samples are clipped")
    failures += _pitch_failures(summary)
    if not _number(summary, "median_slow_to_fast_ratio") > 1.15:
        failures.append("a slow voice is not slower than a fast one")
    return failures


def _speak(engine: Synthesizer, job: Job, frames: int) -> tuple[Samples, StopReason]:
    request = SpeechRequest(
        request_id=uuid4(), text=job.text, voice_description=job.description, seed=job.seed, max_frames=frames,
        language=job.field,
    )  # fmt: skip
    while True:
        try:
            stream = engine.submit(request)
            break
        except CapacityExhausted:
            time.sleep(0.02)
    parts: list[bytes] = []
    while True:
        event = stream.take()
        if isinstance(event, AudioPacket):
            parts.append(event.pcm)
        elif isinstance(event, SpeechEnd):
            return np.frombuffer(b"".join(parts), dtype="<i2"), event.reason
        elif isinstance(event, SpeechFailure):
            raise RecipeError(f"{job.entry} with seed {job.seed} failed: {event.detail}")


def _coverage(workload: Path) -> list[dict[str, Any]]:
    if not workload.exists():
        raise RecipeError(f"{workload} is missing; run from the root of the repository")
    entries = json.loads(workload.read_text("utf-8"))["entries"]
    return [entry for entry in entries if entry["kind"] == "coverage"]


def _job(entry: dict[str, Any], description: str, seed: int) -> Job:
    return Job(
        entry=entry["id"], language=entry["language"], field=entry["language_field"], text=entry["text"],
        description=description, seed=seed,
    )  # fmt: skip


def _of(probes: list[Run], description: str) -> list[Run]:
    return [run for run in probes if run.job.description == description]


def _pitch(runs: list[Run]) -> dict[str, float | None]:
    """Median pitch of the model and of espeak-ng; None where no utterance is periodic enough to have one."""

    def middle(measures: list[Measures]) -> float | None:
        pitches = [item.pitch.hertz for item in measures if item.pitch.hertz is not None]
        return round(median(pitches), 1) if pitches else None

    return {"model": middle([run.made for run in runs]), "espeak": middle([run.reference for run in runs])}


def _voiced(runs: list[Run]) -> dict[str, float]:
    """Median share of voiced frames of the model and of espeak-ng."""
    return {
        "model": round(median(run.made.pitch.voiced_share for run in runs), 3),
        "espeak": round(median(run.reference.pitch.voiced_share for run in runs), 3),
    }


def _seconds(probes: list[Run], description: str) -> float:
    return round(median(run.made.seconds for run in _of(probes, description)), 2)


def _slow_to_fast(probes: list[Run]) -> float:
    """Median over sentences of slow against fast duration."""
    fast = {run.job.entry: run.made.seconds for run in _of(probes, PROBES["fast"])}
    return round(median(run.made.seconds / fast[run.job.entry] for run in _of(probes, PROBES["slow"])), 3)


def _number(summary: dict[str, Any], name: str) -> float:
    value = summary[name]
    if not isinstance(value, int | float):
        raise RecipeError(f"{name} is {value!r}, not a number; run the evaluate stage again")
    return float(value)
