"""Body of POST /v1/audio/speech, as the official `openai` client sends it, and its way into a `SpeechRequest`.

`voice` and `instructions` describe the voice, together where both are given. A stock voice's name (`alloy`) describes
nothing: beside instructions it is only a label that the client's type demands, alone it is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from engine.contract import (
    DEFAULT_DURATION_SECONDS,
    MAX_SEED,
    MAX_TEXT_BYTES,
    MAX_VOICE_DESCRIPTION_BYTES,
    MIN_DURATION_SECONDS,
    SpeechRequest,
)
from engine.server.bodies import (
    TEXT_PATTERN,
    Body,
    Bounds,
    SamplingBody,
    build_request,
    language_field,
    language_name,
    random_seed,
)
from engine.server.encoders import FORMATS, Format, available
from engine.server.problems import Problem

STOCK_VOICES = frozenset(
    ("alloy", "ash", "ballad", "cedar", "coral", "echo", "fable", "marin", "nova", "onyx", "sage", "shimmer", "verse")
)


_NO_NUL = r"^[^\x00]*$"
_STOCK = "|".join("".join(f"[{c.upper()}{c}]" for c in name) for name in sorted(STOCK_VOICES))


def _never(**values: object) -> dict[str, Any]:
    """A schema that refuses these values together."""
    fields = {name: {"const": value} for name, value in values.items()}
    return {"not": {"required": list(fields), "properties": fields}}


_RULES: dict[str, Any] = {
    "anyOf": [
        {"required": ["instructions"], "properties": {"instructions": {"pattern": TEXT_PATTERN}}},
        {
            "required": ["voice"],
            "properties": {"voice": {"pattern": TEXT_PATTERN, "not": {"pattern": rf"^\s*({_STOCK})\s*$"}}},
        },
    ],
    "allOf": [
        _never(stream_format="sse", stream=False),
        _never(response_format="wav", stream=True),
        _never(response_format="wav", stream_format="sse"),
    ],
}


class OpenAISpeechBody(Body):
    """OpenAI-shaped speech request. `language`, `seed` and `max_duration_seconds` are additions of this server."""

    model_config = ConfigDict(json_schema_extra=_RULES)

    model: str = Field(description="The served model's name (see /v1/models) or a configured alias.")
    input: str = Field(
        max_length=MAX_TEXT_BYTES, description="What to say.", json_schema_extra={"pattern": TEXT_PATTERN}
    )
    voice: str = Field(
        default_factory=str,
        max_length=MAX_VOICE_DESCRIPTION_BYTES,
        json_schema_extra={"pattern": _NO_NUL},
        description="Who says it, in words. A stock voice's name needs `instructions` beside it and is then ignored.",
    )
    instructions: str = Field(
        default_factory=str,
        max_length=MAX_VOICE_DESCRIPTION_BYTES,
        json_schema_extra={"pattern": _NO_NUL},
        description="Description of voice and manner.",
    )
    response_format: Literal["mp3", "opus", "flac", "wav", "pcm"] = "mp3"
    speed: Annotated[float, Field(ge=1.0, le=1.0)] = Field(default=1.0, description="1.0 is the only speed.")
    stream: bool = Field(
        default_factory=lambda: True,
        description="False answers with Content-Length. When absent, pcm, mp3 and opus are sent as they are made.",
    )
    stream_format: Literal["audio", "sse"] = Field(default="audio", description="`sse` sends events with base64 audio.")
    language: str = language_field()
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] = Field(default_factory=random_seed)
    max_duration_seconds: float = Field(default_factory=lambda: DEFAULT_DURATION_SECONDS, ge=MIN_DURATION_SECONDS)


@dataclass(frozen=True, kw_only=True)
class Manner:
    """How the answer is to be sent."""

    format: Format
    progressive: bool
    events: bool


def manner_of(body: OpenAISpeechBody) -> Manner:
    """Resolve format, `stream` and `stream_format`.

    Raises:
        Problem: the three contradict each other, or the format cannot be written here.
    """
    if body.response_format not in available():
        offered = ", ".join(available())
        raise Problem(
            "unsupported_response_format",
            f"this server cannot write {body.response_format} (no libsndfile for it); ask for response_format {offered}",
        )
    form, events = FORMATS[body.response_format], body.stream_format == "sse"
    asked = body.stream if "stream" in body.model_fields_set else None
    if events and asked is False:
        raise Problem(
            "unsupported_response_format", "stream_format sse is a stream; leave stream out or set it to true"
        )
    if (events or asked) and not form.streams:
        raise Problem(
            "unsupported_response_format", "a wav states its length first and cannot stream; ask for pcm or flac"
        )
    progressive = events or asked is True or (asked is None and form.unasked)
    return Manner(format=form, progressive=progressive, events=events)


def openai_request(body: OpenAISpeechBody, request_id: UUID, bounds: Bounds, models: frozenset[str]) -> SpeechRequest:
    """The engine's request for a body.

    Raises:
        Problem: with the code of the field that breaks a rule.
    """
    if body.model not in models:
        raise Problem("unsupported_model", f"this server speaks with {', '.join(sorted(models))}; name one of these")
    return build_request(
        bounds,
        request_id=request_id,
        text=body.input,
        voice_description=_description(body),
        seed=body.seed,
        seconds=bounds.duration(body.max_duration_seconds if "max_duration_seconds" in body.model_fields_set else None),
        language=language_name(body.language),
        sampling=SamplingBody(),
    )


def _description(body: OpenAISpeechBody) -> str:
    named = body.voice.strip().lower() in STOCK_VOICES
    words = [text.strip() for text in ("" if named else body.voice, body.instructions) if text.strip()]
    if words:
        return "\n".join(words)
    why = "voice is a stock voice's name" if named else "voice is empty"
    raise Problem("invalid_voice_description", f"{why}; describe the voice in words, in voice or in instructions")
