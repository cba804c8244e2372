"""Settings refuse what no engine could run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.contract import DEFAULT_DURATION_SECONDS, frames_for
from engine.errors import UsageError
from engine.settings import MAX_ROWS, REFERENCE_MODEL, REFERENCE_NAME, EngineSettings


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"rows": 0}, "concurrent requests"),
        ({"rows": MAX_ROWS + 1}, "concurrent requests"),
        ({"max_frames": 0}, "frame"),
        ({"positions": 100, "max_frames": 100}, "--max-positions"),
        ({"threads": -1}, "threads"),
    ],
)
def test_impossible_values_are_usage_errors(values: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        EngineSettings(**values)


def test_defaults_allow_the_wire_default_duration() -> None:
    settings = EngineSettings()
    assert settings.max_frames == frames_for(DEFAULT_DURATION_SECONDS) == 1_500
    assert settings.positions > settings.max_frames


def test_the_display_name_is_given_or_the_directory_or_the_embedded_models() -> None:
    assert EngineSettings(model_name="house/voice").display_name == "house/voice"
    assert EngineSettings(model=Path("/models/some-voice")).display_name == "some-voice"
    assert EngineSettings(model=REFERENCE_MODEL).display_name == REFERENCE_NAME
