"""POST /v1/audio/speech and GET /v1/models, shaped for the official `openai` client.

Refusals are problem documents that carry the client's `error` object. A stream that fails midway ends without its last
chunk (or with an error event), so that no client takes it for whole.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from engine.contract import AudioPacket, SpeechEnd, SpeechFailure, SpeechRequest
from engine.server.bodies import validate
from engine.server.delivery import Delivery
from engine.server.encoders import encode_whole, make_encoder
from engine.server.exchange import Exchange
from engine.server.openai_body import Manner, OpenAISpeechBody, manner_of, openai_request
from engine.server.problems import Problem, openai_error
from engine.server.service import Service

ENDPOINT = "openai"


class OpenAISpeechEndpoint:
    """ASGI endpoint of the OpenAI-shaped route."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope, receive, send, self._service.settings)
        request_id = exchange.identify()
        info = self._service.desk.check(request_id).info
        body = validate(OpenAISpeechBody, await exchange.read_json())
        manner = manner_of(body)
        models = frozenset(self._service.models(info))
        request = openai_request(body, request_id, self._service.backend.bounds(info), models)
        hold = not manner.progressive
        async with self._service.desk.admitted(request, hold=hold) as session, exchange.watching(session):
            delivery = Delivery(exchange, session, self._service, ENDPOINT)
            if manner.progressive:
                await _answer_progressively(delivery, request, manner)
            else:
                await _answer_whole(delivery, request, manner)

    async def models(self, _: Request) -> Response:
        """GET /v1/models: what `model` may be."""
        info = self._service.backend.info
        if info is None:
            raise Problem("backend_unavailable", "the engine is still starting", retry_after=1)
        served = [
            {"id": name, "object": "model", "created": self._service.created, "owned_by": "assay"}
            for name in self._service.models(info)
        ]
        return JSONResponse({"object": "list", "data": served})


async def _answer_whole(delivery: Delivery, request: SpeechRequest, manner: Manner) -> None:
    pcm, end = await delivery.collect()
    body = await asyncio.to_thread(encode_whole, manner.format, pcm)
    headers = {**_headers(request, manner.format.media_type), "x-finish-reason": end.reason.value}
    await delivery.send_whole(headers, body)


async def _answer_progressively(delivery: Delivery, request: SpeechRequest, manner: Manner) -> None:
    event = await delivery.next()
    if isinstance(event, SpeechFailure):  # nothing has left yet: a status can still tell
        raise Problem(event.code, event.detail)
    outlet, encoder = delivery.exchange.outlet, make_encoder(manner.format)
    media_type = "text/event-stream" if manner.events else manner.format.media_type
    await outlet.start(200, {**_headers(request, media_type), "cache-control": "no-store", "x-accel-buffering": "no"})
    while isinstance(event, AudioPacket):
        await delivery.write_audio(event, _wrapped(await asyncio.to_thread(encoder.feed, event.pcm), manner))
        event = await delivery.next()
    rest = await asyncio.to_thread(encoder.finish)
    if isinstance(event, SpeechEnd):
        await outlet.write(_wrapped(rest, manner) + _done(event, manner))
    elif manner.events:
        await outlet.write(_event({"type": "error", "error": openai_error(event.code, event.detail)}))
    else:
        outlet.leave_broken()
    await outlet.finish()


def _headers(request: SpeechRequest, media_type: str) -> dict[str, str]:
    return {"content-type": media_type, "x-qwen3-seed": str(request.seed)}


def _wrapped(data: bytes, manner: Manner) -> bytes:
    if not manner.events or not data:
        return data
    return _event({"type": "speech.audio.delta", "audio": base64.b64encode(data).decode("ascii")})


def _done(end: SpeechEnd, manner: Manner) -> bytes:
    """The closing event. OpenAI counts tokens there; this model has no such price, so no number is made up."""
    return _event({"type": "speech.audio.done", "finish_reason": end.reason.value}) if manner.events else b""


def _event(document: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(document, separators=(',', ':'))}\n\n".encode()
