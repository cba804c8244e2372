"""Answers of the small endpoints as models: they are what is sent and what the OpenAPI document shows."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class Answer(BaseModel):
    """Base of every answer: closed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Live(Answer):
    """GET /health/live."""

    status: Literal["live"] = "live"


class Ready(Answer):
    """GET /health/ready; `model` is null until the engine is loaded."""

    status: Literal["ready", "not_ready"]
    model: str | None
    model_kind: Literal["voice_design"] = "voice_design"
    sample_rate_hz: Literal[24000] = 24000
    engine_loaded: bool


class Complaint(Ready):
    """GET /health/ready of an engine made of several that do not belong together; `detail` names the odd one."""

    status: Literal["ready", "not_ready"] = "not_ready"
    detail: str


class Capabilities(Answer):
    """GET /v1/capabilities. Sizes in bytes, durations in seconds."""

    model: str
    model_kind: Literal["voice_design"] = "voice_design"
    voice_clone: Literal[False] = False
    sample_rate_hz: Literal[24000] = 24000
    channels: Literal[1] = 1
    encoding: Literal["pcm_s16le"] = "pcm_s16le"
    samples_per_codec_frame: Literal[1920] = 1920
    max_codec_frames: int
    max_concurrent_requests: int
    max_text_bytes: int
    max_voice_description_bytes: int
    max_duration_seconds: float
    languages: tuple[str, ...]
    precision: str
    device: str
    streaming: Literal["multipart/mixed"] = "multipart/mixed"


class Cancellation(Answer):
    """DELETE /v1/requests/{request_id}."""

    request_id: str
    status: Literal["cancellation_requested"] = "cancellation_requested"


class ProblemDocument(Answer):
    """Any refusal, RFC 9457. `error` repeats it for the OpenAI client."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    error: dict[str, Any]
    request_id: str | None = None
