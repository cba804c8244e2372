"""Request bodies as closed, strict models, and their way into the engine's `SpeechRequest`.

The models are the source of the served OpenAPI document. The engine's own types check the values again; here a breach
gets the wire code of its field. Not covered: the OpenAI-shaped body (`openai_body`).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.contract import (
    AUTO,
    DEFAULT_DURATION_SECONDS,
    LANGUAGES,
    MAX_SEED,
    MAX_TEXT_BYTES,
    MAX_VOICE_DESCRIPTION_BYTES,
    MIN_DURATION_SECONDS,
    Sampling,
    SpeechRequest,
    StageSampling,
    frames_for,
)
from engine.errors import RequestError
from engine.server.problems import Problem, from_engine

TEXT_PATTERN = r"^[^\x00]*[^\s\x00][^\x00]*$"  # no NUL, and at least one character that is not space
_LANGUAGE = "^(" + "|".join("".join(f"[{c.upper()}{c}]" for c in name) for name in LANGUAGES) + ")$"

CODES: Mapping[str, str] = {
    "text": "invalid_text",
    "voice_description": "invalid_voice_description",
    "language": "unsupported_language",
    "seed": "invalid_seed",
    "max_duration_seconds": "invalid_max_duration",
    "sampling": "invalid_sampling",
    "stream": "unsupported_response_format",
    "output_format": "unsupported_response_format",
    "input": "invalid_text",
    "voice": "invalid_voice_description",
    "instructions": "invalid_voice_description",
    "model": "unsupported_model",
    "speed": "unsupported_speed",
    "response_format": "unsupported_response_format",
    "stream_format": "unsupported_response_format",
}


Temperature = Annotated[float, Field(ge=0.01, le=2.0)]
TopP = Annotated[float, Field(gt=0.0, le=1.0)]
Strategy = Literal["sample", "greedy"]


class Body(BaseModel):
    """Base of every body: closed and strict; values never appear in error texts."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


_GREEDY_ALONE: dict[str, Any] = {
    "if": {"required": ["strategy"], "properties": {"strategy": {"const": "greedy"}}},
    "then": {"properties": dict.fromkeys(("temperature", "top_p", "top_k"), False)},
}
_FORMS_AGREE: dict[str, Any] = {
    "if": {"required": ["stream", "output_format"]},
    "then": {
        "oneOf": [
            {"properties": {"stream": {"const": True}, "output_format": {"const": "pcm_s16le"}}},
            {"properties": {"stream": {"const": False}, "output_format": {"const": "wav"}}},
        ]
    },
}


class PredictorBody(Body):
    """Sampling of the fifteen further codebooks."""

    model_config = ConfigDict(json_schema_extra=_GREEDY_ALONE)

    strategy: Strategy = "sample"
    temperature: Temperature = 0.9
    top_p: TopP = 1.0
    top_k: Annotated[int, Field(ge=0, le=2_048)] = 50


class SamplingBody(Body):
    """Sampling of the first codebook, with the predictor's own inside."""

    model_config = ConfigDict(json_schema_extra=_GREEDY_ALONE)

    strategy: Strategy = "sample"
    temperature: Temperature = 0.9
    top_p: TopP = 1.0
    top_k: Annotated[int, Field(ge=0, le=3_072)] = 50
    repetition_penalty: Annotated[float, Field(ge=0.1, le=2.0)] = 1.05
    predictor: PredictorBody = Field(default_factory=PredictorBody)

    def as_sampling(self) -> Sampling:
        """The engine's own form; refuses filters beside a greedy strategy."""
        return Sampling(
            talker=_stage(self, "sampling"),
            predictor=_stage(self.predictor, "sampling.predictor"),
            repetition_penalty=self.repetition_penalty,
        )


def random_seed() -> int:
    """A seed within the contract's range."""
    return secrets.randbelow(MAX_SEED + 1)


def language_field() -> Any:
    """The language of a body: any letter case, `auto` when absent."""
    return Field(default=AUTO, description="Case-insensitive language name.", json_schema_extra={"pattern": _LANGUAGE})


class SpeechBody(Body):
    """Body of POST /v1/voice-design/speech."""

    model_config = ConfigDict(json_schema_extra=_FORMS_AGREE)

    text: str = Field(
        max_length=MAX_TEXT_BYTES,
        description="What to say: not empty after trimming, no NUL, bounded in UTF-8 bytes (see /v1/capabilities).",
        json_schema_extra={"pattern": TEXT_PATTERN},
    )
    voice_description: str = Field(
        max_length=MAX_VOICE_DESCRIPTION_BYTES,
        description="Who says it, in words. Never a voice's name or a recording.",
        json_schema_extra={"pattern": TEXT_PATTERN},
    )
    language: str = language_field()
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] = Field(
        default_factory=random_seed, description="Random when absent; echoed in x-qwen3-seed and in the start part."
    )
    max_duration_seconds: float = Field(
        default_factory=lambda: DEFAULT_DURATION_SECONDS,
        ge=MIN_DURATION_SECONDS,
        description="Ceiling in seconds of 12.5 codec frames. When absent: 120, or the server's maximum if less.",
    )
    sampling: SamplingBody = Field(default_factory=SamplingBody)
    stream: bool = Field(
        default_factory=lambda: True,
        description="True streams multipart PCM, false answers one WAV. Inferred when absent.",
    )
    output_format: Literal["pcm_s16le", "wav"] = Field(
        default_factory=lambda: "pcm_s16le", description="`pcm_s16le` streams, `wav` is one file. Inferred when absent."
    )

    @property
    def buffered(self) -> bool:
        """True for one WAV, false for a multipart stream.

        Raises:
            Problem: `stream` and `output_format` contradict each other.
        """
        stream = self.stream if "stream" in self.model_fields_set else None
        wav = self.output_format == "wav" if "output_format" in self.model_fields_set else None
        if stream is not None and wav is not None and stream == wav:
            raise Problem(
                "unsupported_response_format",
                "stream true goes with pcm_s16le and stream false with wav; leave one of the two out",
            )
        return wav is True or stream is False


def language_name(given: str) -> str:
    """The engine's name of a language; only ASCII letters have a case here, since `lower` makes a k of the Kelvin sign."""
    return given.lower() if given.isascii() else given


Model = TypeVar("Model", bound=Body)


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Limits in force: the server's settings, tightened by the engine's own."""

    max_text_bytes: int
    max_voice_description_bytes: int
    max_duration_seconds: float

    def duration(self, asked: float | None) -> float:
        """The ceiling of a request in seconds; `asked` is None where the client named none.

        Raises:
            Problem: `invalid_max_duration`.
        """
        longest = self.max_duration_seconds
        if asked is None:
            return min(DEFAULT_DURATION_SECONDS, longest)
        if asked > longest:
            detail = f"max_duration_seconds must be within {MIN_DURATION_SECONDS:g} and {longest:g}"
            raise Problem("invalid_max_duration", detail)
        return asked


def validate(model: type[Model], document: Mapping[str, Any]) -> Model:
    """Check a parsed body against its model.

    Raises:
        Problem: `malformed_json` for a field that does not exist, else the code of the first field in breach.
    """
    try:
        return model.model_validate(document)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
    for breach in found:
        if breach["type"] == "extra_forbidden":
            raise Problem("malformed_json", f"{_path(breach['loc'])} is not a field of this request; remove it")
    first = found[0]
    code = CODES.get(str(first["loc"][0]), "malformed_json") if first["loc"] else "malformed_json"
    raise Problem(code, f"{_path(first['loc'])}: {first['msg']}")


def speech_request(body: SpeechBody, request_id: UUID, bounds: Bounds) -> SpeechRequest:
    """The engine's request for a body.

    Raises:
        Problem: with the code of the field that breaks a rule.
    """
    return build_request(
        bounds,
        request_id=request_id,
        text=body.text,
        voice_description=body.voice_description,
        seed=body.seed,
        seconds=bounds.duration(body.max_duration_seconds if "max_duration_seconds" in body.model_fields_set else None),
        language=language_name(body.language),
        sampling=body.sampling,
    )


def build_request(
    bounds: Bounds,
    *,
    request_id: UUID,
    text: str,
    voice_description: str,
    seed: int,
    seconds: float,
    language: str,
    sampling: SamplingBody,
) -> SpeechRequest:
    """Build and check a `SpeechRequest` under the limits in force.

    Raises:
        Problem: with the code of the field that breaks a rule.
    """
    _fits(text, "text", bounds.max_text_bytes, "invalid_text")
    _fits(voice_description, "voice_description", bounds.max_voice_description_bytes, "invalid_voice_description")
    try:
        return SpeechRequest(
            request_id=request_id,
            text=text,
            voice_description=voice_description,
            seed=seed,
            max_frames=frames_for(seconds),
            language=language,
            sampling=sampling.as_sampling(),
        )
    except RequestError as error:
        raise from_engine(error) from None


def _stage(body: SamplingBody | PredictorBody, name: str) -> StageSampling:
    if body.strategy == "greedy":
        beside = sorted(body.model_fields_set & {"temperature", "top_p", "top_k"})
        if beside:
            raise Problem("invalid_sampling", f"{name} is greedy; remove {', '.join(beside)}")
    return StageSampling(strategy=body.strategy, temperature=body.temperature, top_p=body.top_p, top_k=body.top_k)


def _fits(value: str, name: str, limit: int, code: str) -> None:
    size = len(value.encode())
    if size > limit:
        raise Problem(code, f"{name} has {size} UTF-8 bytes, more than {limit}; shorten it")


def _path(location: tuple[int | str, ...]) -> str:
    return ".".join(str(step) if str(step).isidentifier() else "?" for step in location)[:120] or "the body"
