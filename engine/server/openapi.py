"""The OpenAPI 3.1 document, generated from the body and answer models; limits of the loaded engine are filled in.

Not covered: the parts inside a multipart stream beyond their description, which OpenAPI cannot express.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from engine.server.answers import Cancellation, Capabilities, Live, ProblemDocument, Ready
from engine.server.bodies import Body, SpeechBody
from engine.server.encoders import available
from engine.server.openai_body import OpenAISpeechBody
from engine.server.problems import KINDS, MEDIA_TYPE
from engine.server.service import Service

JSON = "application/json"
PREFIX = "#/components/schemas/"
_UUID = {"type": "string", "format": "uuid"}
_BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
_EVENT = {"type": "object", "properties": {"data": {"type": "string"}}, "required": ["data"]}
_STREAM_TEXT = (
    "Parts with CRLF line ends, Content-Type and Content-Length: one JSON start part, audio parts "
    "(audio/pcm;rate=24000;channels=1;format=s16le with X-Sequence, X-First-Codec-Frame, X-First-Sample, "
    "X-Sample-Count, X-Codec-Frames, X-Final), one JSON end or error part."
)
_GENERAL = ("malformed_request", "unauthorized", "headers_too_large", "internal_error")
_ADMISSION = (
    "malformed_json", "invalid_request_id", "request_timeout", "request_id_in_use", "request_cancelled",
    "request_too_large", "unsupported_media_type", "invalid_text", "capacity_exhausted", "rate_limited",
    "backend_unavailable", "server_shutting_down", "retirement_timeout",
)  # fmt: skip


def document(service: Service) -> dict[str, Any]:
    """The document as served at /openapi.json."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Assay voice-design engine",
            "version": "1",
            "description": "Speech from a text and a voice description, streamed as it is made.",
        },
        "paths": _paths(),
        "components": {
            "schemas": _schemas(service),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"bearer": []}],
    }


def _paths() -> dict[str, Any]:
    unready = {"503": _content("The engine is not ready.", JSON, Ready)}
    return {
        "/health/live": {"get": _operation("Whether the process answers", {"200": _content("It does.", JSON, Live)})},
        "/health/ready": {
            "get": _operation("Whether speech can be asked for", {"200": _content("It can.", JSON, Ready), **unready})
        },
        "/v1/capabilities": {
            "get": _operation(
                "Model and limits",
                {"200": _content("The limits in force.", JSON, Capabilities), **_problems("backend_unavailable")},
            )
        },
        "/v1/voice-design/speech": {"post": _speech()},
        "/v1/audio/speech": {"post": _openai_speech()},
        "/v1/models": {
            "get": _operation(
                "Names that `model` may have",
                {
                    "200": _any("The names, OpenAI-shaped.", JSON, {"type": "object"}),
                    **_problems("backend_unavailable"),
                },
            )
        },
        "/v1/requests/{request_id}": {"delete": _cancellation()},
        "/metrics": {
            "get": _operation("Prometheus metrics", {"200": _any("Text format.", "text/plain", {"type": "string"})})
        },
    }


def _speech() -> dict[str, Any]:
    headers = {"x-qwen3-seed": {"schema": {"type": "integer"}}, "x-request-id": {"schema": _UUID}}
    answer = {
        "description": f"Speech. {_STREAM_TEXT} Or one WAV with exact sizes.",
        "headers": headers,
        "content": {"multipart/mixed": _BINARY, "audio/wav": _BINARY},
    }
    return _posting("Speak a text with a designed voice", SpeechBody, answer)


def _openai_speech() -> dict[str, Any]:
    content = {form.media_type: _BINARY for form in available().values()}
    answer = {
        "description": "Speech in the format asked for, or events with base64 audio.",
        "headers": {"x-qwen3-seed": {"schema": {"type": "integer"}}, "x-request-id": {"schema": _UUID}},
        "content": {**content, "text/event-stream": {"schema": _EVENT}},
    }
    return _posting("Speak a text, OpenAI-shaped", OpenAISpeechBody, answer)


def _posting(summary: str, body: type[Body], answer: Mapping[str, Any]) -> dict[str, Any]:
    operation = _operation(summary, {"200": answer, **_problems(*_ADMISSION)})
    operation["requestBody"] = {"required": True, "content": {JSON: {"schema": {"$ref": PREFIX + body.__name__}}}}
    operation["parameters"] = [
        {
            "name": "x-request-id",
            "in": "header",
            "required": False,
            "schema": _UUID,
            "description": "Id of the request.",
        }
    ]
    return operation


def _cancellation() -> dict[str, Any]:
    answers = {
        "202": _content("The request is being stopped.", JSON, Cancellation),
        **_problems("invalid_request_id", "request_not_found", "retirement_timeout"),
    }
    operation = _operation("Cancel a live request", answers)
    operation["parameters"] = [{"name": "request_id", "in": "path", "required": True, "schema": _UUID}]
    return operation


def _operation(summary: str, responses: Mapping[str, Any]) -> dict[str, Any]:
    return {"summary": summary, "responses": {**_problems(*_GENERAL), **responses}}


def _problems(*codes: str) -> dict[str, Any]:
    """One response a status; the codes that share it are listed."""
    found: dict[str, Any] = {}
    for status in sorted({KINDS[code].status for code in codes}):
        listed = ", ".join(f"`{code}`" for code in KINDS if KINDS[code].status == status)
        found[str(status)] = _content(f"Refused: {listed}.", MEDIA_TYPE, ProblemDocument)
        if status == 429:
            found["429"]["headers"] = {"retry-after": {"schema": {"type": "integer"}, "description": "Seconds."}}
    return found


def _content(description: str, media_type: str, model: type[BaseModel]) -> dict[str, Any]:
    return _any(description, media_type, {"$ref": PREFIX + model.__name__})


def _any(description: str, media_type: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {media_type: {"schema": schema}}}


def _schemas(service: Service) -> dict[str, Any]:
    asked: Iterable[type[BaseModel]] = (SpeechBody, OpenAISpeechBody)
    given: Iterable[type[BaseModel]] = (Live, Ready, Capabilities, Cancellation, ProblemDocument)
    _, found = models_json_schema(
        [*((model, "validation") for model in asked), *((model, "serialization") for model in given)],
        ref_template=PREFIX + "{model}",
    )
    schemas: dict[str, Any] = found["$defs"]
    _offer_formats(schemas[OpenAISpeechBody.__name__])
    info = service.backend.info
    if info is not None:
        longest = service.backend.bounds(info).max_duration_seconds
        for name in (SpeechBody.__name__, OpenAISpeechBody.__name__):
            schemas[name]["properties"]["max_duration_seconds"]["maximum"] = longest
        schemas[OpenAISpeechBody.__name__]["properties"]["model"]["enum"] = list(service.models(info))
    return schemas


def _offer_formats(body: dict[str, Any]) -> None:
    """Only formats that can be written; where the default is none of them, the field has to be given."""
    asked = body["properties"]["response_format"]
    asked["enum"] = list(available())
    if asked["default"] not in asked["enum"]:
        del asked["default"]
        body["required"].append("response_format")
