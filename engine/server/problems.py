"""Refusals on the wire: `application/problem+json` (RFC 9457), one code an entry.

Codes and statuses are the wire contract's; the last group is ours, for faults below the contract.
Each document also carries the OpenAI error object as an extension member, so that its client reads the same answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.errors import RequestError

MEDIA_TYPE = "application/problem+json"
URN = "urn:assay:problem:"
RETRY_AFTER_SECONDS = 1


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What a code always means."""

    status: int
    title: str


KINDS: Mapping[str, Kind] = {
    "malformed_json": Kind(status=400, title="The body is not the JSON object expected here"),
    "invalid_request_id": Kind(status=400, title="The x-request-id header is not a UUID"),
    "request_not_found": Kind(status=404, title="No live request has this id"),
    "request_id_in_use": Kind(status=409, title="A live request has this id"),
    "request_cancelled": Kind(status=409, title="The request was cancelled"),
    "request_too_large": Kind(status=413, title="The body is too large"),
    "unsupported_media_type": Kind(status=415, title="The body's media type is not supported"),
    "invalid_text": Kind(status=422, title="The text cannot be spoken"),
    "invalid_voice_description": Kind(status=422, title="The voice description cannot be used"),
    "unsupported_language": Kind(status=422, title="The language is not supported"),
    "invalid_max_duration": Kind(status=422, title="The duration is out of range"),
    "invalid_seed": Kind(status=422, title="The seed is out of range"),
    "invalid_sampling": Kind(status=422, title="The sampling settings are out of range"),
    "unsupported_response_format": Kind(status=422, title="The response format is not supported"),
    "unsupported_model": Kind(status=422, title="The model is not served here"),
    "unsupported_speed": Kind(status=422, title="The speed is not supported"),
    "capacity_exhausted": Kind(status=429, title="Every slot is busy"),
    "internal_error": Kind(status=500, title="The server failed"),
    "backend_unavailable": Kind(status=503, title="The engine cannot take requests"),
    "server_shutting_down": Kind(status=503, title="The server is shutting down"),
    "retirement_timeout": Kind(status=503, title="The engine did not end a cancelled request"),
    "unauthorized": Kind(status=401, title="A bearer token is required"),
    "not_found": Kind(status=404, title="Nothing is served at this path"),
    "method_not_allowed": Kind(status=405, title="The path does not take this method"),
    "request_timeout": Kind(status=408, title="The request took too long to arrive"),
    "rate_limited": Kind(status=429, title="This client made too many requests"),
    "malformed_request": Kind(status=400, title="The message is not HTTP/1.1"),
    "headers_too_large": Kind(status=431, title="The request line and headers are too large"),
}  # fmt: skip


class Problem(Exception):
    """Refuse the request in hand with a code of `KINDS`; `detail` names the thing and the mend."""

    def __init__(self, code: str, detail: str, *, retry_after: int | None = None, allow: str | None = None) -> None:
        super().__init__(code)
        self.code = code if code in KINDS else "internal_error"
        self.detail = detail
        self.retry_after = retry_after
        self.allow = allow

    @property
    def status(self) -> int:
        return KINDS[self.code].status

    def headers(self) -> dict[str, str]:
        """Headers that belong to the code: Retry-After, Allow, WWW-Authenticate, Connection."""
        found = {"content-type": MEDIA_TYPE, "cache-control": "no-store"}
        if self.retry_after is not None:
            found["retry-after"] = str(self.retry_after)
        if self.allow is not None:
            found["allow"] = self.allow
        if self.code == "malformed_request":
            found["connection"] = "close"  # where the next request begins is not known
        if self.code == "unauthorized":
            found["www-authenticate"] = "Bearer"
        return found

    def body(self, request_id: str | None = None) -> bytes:
        """The problem document, UTF-8 JSON."""
        return json.dumps(document(self.code, self.detail, request_id)).encode()


def document(code: str, detail: str, request_id: str | None) -> dict[str, Any]:
    """The problem document as a mapping; `request_id` is left out when there is none."""
    kind = KINDS[code]
    found: dict[str, Any] = {
        "type": URN + code,
        "title": kind.title,
        "status": kind.status,
        "code": code,
        "detail": detail,
        "error": openai_error(code, detail),
    }
    if request_id is not None:
        found["request_id"] = request_id
    return found


def openai_error(code: str, detail: str) -> dict[str, Any]:
    """The error object of the OpenAI API."""
    status = KINDS[code].status if code in KINDS else 500
    return {"message": detail, "type": _openai_type(status), "param": None, "code": code}


def from_engine(error: RequestError) -> Problem:
    """The problem for an engine's refusal; a busy engine asks the client to come back."""
    retry = RETRY_AFTER_SECONDS if error.code in ("capacity_exhausted", "backend_unavailable") else None
    return Problem(error.code, error.detail, retry_after=retry)


def _openai_type(status: int) -> str:
    if status == 401:
        return "authentication_error"
    if status == 429:
        return "rate_limit_error"
    return "invalid_request_error" if status < 500 else "server_error"
