"""The card holds the records' figures, and belongs to the files beside it."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path

import pytest

from recipe import codec_training, onset, talker_training
from recipe.card import CARD, write_card
from recipe.corpus import write_record
from recipe.errors import RecipeError
from recipe.evaluate import EVALUATION, summarise
from recipe.export import file_hashes
from tests.recipe.conftest import Tiny
from tests.recipe.test_evaluate import probes, run


@pytest.fixture
def work(tiny: Tiny, tmp_path: Path) -> Path:
    shutil.copytree(tiny.directory, tmp_path / "model")
    measured = {"peak": 0.91, "spectral_distance": 2.25, "mel_correlation": 0.9239, "level": 1.0}
    codec: dict[str, object] = {
        "hours": 8.1, "hours_encoded": 61.4, "utterances": 43_000, "steps": 77, "seconds": 1.5,
        "spectral_distance": 2.05,
        "mel_correlation": 0.9164, "entries_in_use": 0.96, "level_before_scaling": 0.9,
    }  # fmt: skip
    write_record(tmp_path / codec_training.RECORD_FILE, codec)
    write_record(
        tmp_path / onset.RECORD_FILE,
        {"steps": 5, "seconds": 2.0, "utterances": 40, "held_out_before": measured, "held_out_after": measured},
    )
    write_record(
        tmp_path / talker_training.RECORD_FILE,
        {
            "steps": 88,
            "seconds": 2.5,
            "utterances": 42_995,
            "captured": True,
            "talker_loss": 3.6,
            "predictor_loss": 2.8,
        },
    )
    runs = [run(seconds=5.0)]
    write_record(
        tmp_path / EVALUATION,
        {
            "summary": summarise(runs, probes()), "limits": {"frames": 256}, "files": file_hashes(tmp_path / "model"),
            "engine": {"precision": "fp32", "device": "cpu"}, "runs": [asdict(item) for item in runs],
        },
    )  # fmt: skip
    return tmp_path


def test_the_card_names_licence_figures_and_every_files_hash(work: Path) -> None:
    write_card(work, work / "model")
    text = (work / "model" / CARD).read_text("utf-8")
    assert text.startswith("---\nlicense: apache-2.0\n")
    assert "CC BY-SA" in text
    assert "| 1.25 / 1.25 / 1.25 |" in text
    assert "0.9239" in text
    assert "42995" in text
    assert all(value in text for value in file_hashes(work / "model").values())
    assert "limits: none." in text
    assert "{" not in text.split("---\n", 2)[2]


def test_a_card_is_not_written_for_files_that_were_not_evaluated(work: Path) -> None:
    (work / "model" / "config.json").write_text("{}")
    with pytest.raises(RecipeError, match="belongs to other files"):
        write_card(work, work / "model")
