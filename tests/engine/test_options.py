"""Flags before environment before defaults, and every refusal names its source."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from engine.errors import UsageError
from engine.options import OPTIONS, add_engine_arguments, as_mapping, as_table, engine_settings
from engine.prompt_mode import TextMode
from engine.settings import EngineSettings, Precision


def read(*flags: str, environment: dict[str, str] | None = None, rows: int | None = None) -> EngineSettings:
    parser = argparse.ArgumentParser()
    add_engine_arguments(parser)
    overrides = {} if rows is None else {"rows": rows}
    return engine_settings(parser.parse_args(flags), environment or {}, **overrides)


def test_without_flags_and_environment_the_defaults_hold() -> None:
    assert read() == EngineSettings()


def test_a_flag_wins_over_the_environment_which_wins_over_the_default() -> None:
    environment = {"ASSAY_MAX_FRAMES": "40", "ASSAY_DEVICE": "cpu"}
    settings = read("--max-frames", "50", environment=environment)
    assert (settings.max_frames, settings.device) == (50, "cpu")


def test_every_option_reaches_its_field() -> None:
    settings = read(
        "--model", "/m", "--model-name", "n", "--device", "cpu", "--precision", "fp32", "--threads", "2",
        "--max-concurrent-requests", "3", "--max-positions", "99", "--max-frames", "9", "--text-mode", "streaming",
        "--allow-symlinks",
    )  # fmt: skip
    assert settings == EngineSettings(
        model=Path("/m"), model_name="n", device="cpu", precision=Precision.FP32, rows=3, positions=99, max_frames=9,
        text_mode=TextMode.STREAMING, threads=2, allow_symlinks=True,
    )  # fmt: skip
    assert len({option.variable for option in OPTIONS}) == len(OPTIONS)


def test_overrides_win_over_everything() -> None:
    assert read("--max-concurrent-requests", "3", rows=1).rows == 1


@pytest.mark.parametrize("flag", ["--max-frames", "--precision", "--text-mode"])
def test_a_flag_that_cannot_be_read_is_named(flag: str) -> None:
    with pytest.raises(UsageError, match=flag):
        read(flag, "seven")


def test_a_variable_that_cannot_be_read_is_named() -> None:
    with pytest.raises(UsageError, match="ASSAY_THREADS='many'"):
        read(environment={"ASSAY_THREADS": "many"})


def test_the_settings_in_force_are_shown_by_the_names_of_their_flags() -> None:
    shown = as_mapping(read("--model", "/m", "--max-concurrent-requests", "3"))
    assert set(shown) == {option.name for option in OPTIONS} | {"allow_symlinks"}
    assert (shown["model"], shown["max_concurrent_requests"], shown["allow_symlinks"]) == ("/m", 3, False)
    json.dumps(shown)


def test_documentation_holds_the_table() -> None:
    assert as_table() in (Path(__file__).parents[2] / "docs" / "server.md").read_text("utf-8")
