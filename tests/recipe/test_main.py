"""The command line: refusals by exit code, and (slowly) every stage for real."""

from __future__ import annotations

from pathlib import Path

import pytest

from recipe.__main__ import main
from recipe.errors import RecipeError
from recipe.settings import preset


def test_a_stage_without_its_input_says_which_stage_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["render", "--work", str(tmp_path), "--device", "cpu"]) == 1
    assert "run the text stage first" in capsys.readouterr().err


def test_an_unknown_preset_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="use full or smoke"):
        preset("huge", work=tmp_path, device="cpu", processes=1)


@pytest.mark.slow
def test_every_stage_runs_in_the_smallest_preset(tmp_path: Path) -> None:
    assert main(["all", "--preset", "smoke", "--device", "cpu", "--processes", "1", "--work", str(tmp_path)]) == 0
    card = (tmp_path / "model" / "MODEL_CARD.md").read_text("utf-8")
    assert "Shortcomings against the recipe's own limits: none." not in card, (
        "a smoke model says nothing, and the card must say so"
    )
