"""The small endpoints: health, capabilities, cancellation, metrics."""

from __future__ import annotations

from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from engine.contract import frames_for
from engine.server import requestid
from engine.server.answers import Answer, Cancellation, Capabilities, Complaint, Live, Ready
from engine.server.backend import Phase
from engine.server.exchange import ACCOUNT_KEY
from engine.server.metrics import CONTENT_TYPE
from engine.server.problems import Problem
from engine.server.service import Service


class Handler(Protocol):
    """A function endpoint."""

    async def __call__(self, request: Request, /) -> Response: ...


def routes(service: Service) -> list[BaseRoute]:
    """Routes of the small endpoints."""

    async def live(_: Request) -> Response:
        return _json(Live())

    async def ready(_: Request) -> Response:
        return _readiness(service)

    async def capabilities(_: Request) -> Response:
        return _json(_capabilities(service))

    async def cancel(request: Request) -> Response:
        return _cancelled(service, request)

    async def metrics(_: Request) -> Response:
        service.metrics.ready.set(service.desk.ready)
        return Response(service.metrics.text(), media_type=CONTENT_TYPE)

    return [
        Route("/health/live", live, methods=["GET"]),
        Route("/health/ready", ready, methods=["GET"]),
        Route("/v1/capabilities", capabilities, methods=["GET"]),
        Route("/v1/requests/{request_id}", cancel, methods=["DELETE"]),
        Route("/metrics", metrics, methods=["GET"]),
    ]


def _readiness(service: Service) -> Response:
    info = service.backend.info
    ready = service.desk.ready
    complaint = service.backend.complaint
    if complaint is not None:
        answer_odd = Complaint(model=info.model if info else None, engine_loaded=ready, detail=complaint)
        return _json(answer_odd, 503)
    answer = Ready(
        status="ready" if ready else "not_ready",
        model=info.model if info else None,
        engine_loaded=ready,
    )
    return _json(answer, 200 if ready else 503)


def _capabilities(service: Service) -> Capabilities:
    info = service.backend.info
    if info is None or service.backend.phase is Phase.STARTING:
        raise Problem("backend_unavailable", "the engine is still starting", retry_after=1)
    bounds = service.backend.bounds(info)
    return Capabilities(
        model=info.model,
        max_codec_frames=min(info.max_codec_frames, frames_for(bounds.max_duration_seconds)),
        max_concurrent_requests=info.max_concurrent_requests,
        max_text_bytes=bounds.max_text_bytes,
        max_voice_description_bytes=bounds.max_voice_description_bytes,
        max_duration_seconds=bounds.max_duration_seconds,
        languages=info.languages,
        precision=info.precision,
        device=info.device,
    )


def _cancelled(service: Service, request: Request) -> Response:
    request_id = requestid.parse(request.path_params["request_id"])
    if request_id is None:
        raise Problem("invalid_request_id", "the path must end with a UUID of 36 characters")
    request.scope[ACCOUNT_KEY].request_id = request_id
    service.desk.cancel(request_id)
    return _json(Cancellation(request_id=str(request_id)), 202)


def _json(answer: Answer, status: int = 200) -> Response:
    return Response(
        answer.model_dump_json(), status, headers={"cache-control": "no-store"}, media_type="application/json"
    )
