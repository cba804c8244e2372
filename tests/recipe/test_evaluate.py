"""The evaluation's figures: from runs to summary to verdict, each fault found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from recipe.errors import RecipeError
from recipe.evaluate import PROBES, WORKLOAD, Job, Run, held_out_jobs, probe_jobs, summarise, verdict
from recipe.measures import Measures, Pitch

ROOT = Path(__file__).parents[2]


def voice(hertz: float, voiced_share: float = 0.8) -> Pitch:
    return Pitch(hertz=hertz, voiced_share=voiced_share)


GOOD = Measures(seconds=4.0, speech_share=0.8, rms=0.08, clipped=0, pitch=voice(150.0))


def run(entry: str = "coverage-en", description: str = "A woman.", **made: object) -> Run:
    job = Job(entry=entry, language="en", field="english", text="Rain.", description=description, seed=1)
    return Run(job=job, natural_end=True, made=replace(GOOD, **made), reference=GOOD)  # type: ignore[arg-type]


def probes(slow: float = 6.0, high: float = 260.0, voiced: float = 0.8) -> list[Run]:
    return [
        run(description=PROBES["low female"], pitch=voice(150.0)),
        run(description=PROBES["high female"], pitch=voice(high)),
        run(description=PROBES["low male"], pitch=voice(85.0, voiced)),
        run(description=PROBES["slow"], seconds=slow),
        run(description=PROBES["fast"], seconds=4.0),
    ]


def test_a_good_model_has_no_shortcoming() -> None:
    summary = summarise([run(), run(seconds=4.4), run(seconds=3.6)], probes())
    assert verdict(summary) == []
    assert summary["duration_ratio_min_median_max"] == [0.9, 1.0, 1.1]
    assert summary["median_slow_to_fast_ratio"] == 1.5


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (replace(run(), natural_end=False), "ended by themselves"),
        (run(seconds=9.0), "durations_within_limits"),
        (run(speech_share=0.1), "with_speech"),
        (run(rms=0.01), "levels_within_limits"),
        (run(clipped=2), "clipped"),
    ],
    ids=["endless", "long", "silent", "quiet", "clipped"],
)
def test_each_fault_of_a_run_is_named(bad: Run, message: str) -> None:
    (shortcoming,) = verdict(summarise([run(), bad], probes()))
    assert message in shortcoming


def test_voices_without_effect_are_named() -> None:
    (flat,) = verdict(summarise([run()], probes(high=152.0)))
    assert "not clearly higher" in flat
    assert verdict(summarise([run()], probes(slow=4.0))) == ["a slow voice is not slower than a fast one"]
    (hoarse,) = verdict(summarise([run()], probes(voiced=0.1)))
    assert hoarse == "the low male voice is hoarse: 0.1 of its loud frames are voiced, 0.8 of espeak-ng's"


def test_held_out_jobs_are_five_seeds_of_each_of_24_languages_and_never_trained_text() -> None:
    jobs = held_out_jobs(ROOT / WORKLOAD, 5)
    assert len(jobs) == 24 * 5
    assert len({job.language for job in jobs}) == 24
    assert len({(job.entry, job.seed) for job in jobs}) == len(jobs)
    assert len(probe_jobs(ROOT / WORKLOAD)) == 10 * len(PROBES)


def test_a_missing_workload_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="root of the repository"):
        held_out_jobs(tmp_path / "workload.json", 1)
