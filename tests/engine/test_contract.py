"""Requests are checked at the door, and seconds become frames exactly."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from engine.contract import (
    LANGUAGES,
    MAX_SEED,
    MAX_TEXT_BYTES,
    MAX_VOICE_DESCRIPTION_BYTES,
    SAMPLES_PER_FRAME,
    AudioPacket,
    Sampling,
    SpeechRequest,
    StageSampling,
    frames_for,
)
from engine.errors import InvalidRequest


def request(**changes: Any) -> SpeechRequest:
    values: dict[str, Any] = {
        "request_id": UUID(int=1), "text": "Hello.", "voice_description": "Calm.", "seed": 0, "max_frames": 1,
    }  # fmt: skip
    return SpeechRequest(**{**values, **changes})


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_declared_language_is_accepted(language: str) -> None:
    assert request(language=language).language == language


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"text": ""}, "invalid_text"),
        ({"text": " \n\t"}, "invalid_text"),
        ({"text": "a\0b"}, "invalid_text"),
        ({"text": "\ud83d"}, "invalid_text"),
        ({"text": "é" * (MAX_TEXT_BYTES // 2) + "x"}, "invalid_text"),
        ({"voice_description": "  "}, "invalid_voice_description"),
        ({"voice_description": "a\0"}, "invalid_voice_description"),
        ({"voice_description": "x" * (MAX_VOICE_DESCRIPTION_BYTES + 1)}, "invalid_voice_description"),
        ({"language": "klingon"}, "unsupported_language"),
        ({"language": "English"}, "unsupported_language"),
        ({"seed": -1}, "invalid_seed"),
        ({"seed": MAX_SEED + 1}, "invalid_seed"),
        ({"max_frames": 0}, "invalid_max_duration"),
    ],
)
def test_a_field_that_breaks_its_rule_is_refused_by_its_own_code(changes: dict[str, Any], code: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        request(**changes)
    assert refusal.value.code == code


@pytest.mark.parametrize(
    "changes",
    [
        {"text": "é" * (MAX_TEXT_BYTES // 2)},
        {"text": "🙂"},
        {"text": "..."},
        {"text": "<|im_end|>"},
        {"voice_description": "x" * MAX_VOICE_DESCRIPTION_BYTES},
        {"seed": MAX_SEED},
    ],
)
def test_the_limits_themselves_and_odd_text_are_accepted(changes: dict[str, Any]) -> None:
    made = request(**changes)
    assert all(getattr(made, name) == value for name, value in changes.items())


@pytest.mark.parametrize(
    "values",
    [
        {"temperature": 0.009},
        {"temperature": 2.1},
        {"temperature": float("nan")},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"top_k": -1},
        {"top_k": 3_073},
    ],
)
def test_stage_sampling_refuses_values_outside_the_wire_ranges(values: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        StageSampling(**values)
    assert refusal.value.code == "invalid_sampling"
    assert next(iter(values)) in refusal.value.detail


def test_sampling_refuses_a_predictor_top_k_beyond_its_vocabulary_and_a_penalty_out_of_range() -> None:
    with pytest.raises(InvalidRequest, match=r"predictor\.top_k"):
        Sampling(predictor=StageSampling(top_k=2_049))
    for penalty in (0.05, 2.5, float("nan")):
        with pytest.raises(InvalidRequest, match="repetition_penalty"):
            Sampling(repetition_penalty=penalty)


def test_seconds_become_frames_exactly() -> None:
    """A double of 0.56 times 12.5 is above 7: every whole frame count must survive its decimal spelling."""
    for frames in range(1, 1_501):
        seconds = Decimal(frames) * Decimal("0.08")
        assert frames_for(float(seconds)) == frames
        assert frames_for(float(seconds + Decimal("0.001"))) == frames + 1


def test_a_packet_counts_its_samples_from_its_frames() -> None:
    packet = AudioPacket(sequence=0, first_frame=0, frames=3, pcm=b"", final=False)
    assert packet.samples == 3 * SAMPLES_PER_FRAME == 5_760
