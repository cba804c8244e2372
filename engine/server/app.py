"""The ASGI application: routes inside, the door outside. Not covered: sockets and signals (`process`, `lifecycle`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from engine.server import openapi, page, small
from engine.server.door import Door
from engine.server.exchange import ACCOUNT_KEY
from engine.server.openai_speech import OpenAISpeechEndpoint
from engine.server.problems import Problem
from engine.server.service import Service
from engine.server.settings import names
from engine.server.speech import SpeechEndpoint


def build_app(service: Service) -> ASGIApp:
    """The application of one server."""
    settings = service.settings
    openai = OpenAISpeechEndpoint(service)
    routes: list[BaseRoute] = [
        *small.routes(service),
        *service.routes,
        Route("/v1/voice-design/speech", SpeechEndpoint(service), methods=["POST"]),
        Route("/v1/audio/speech", openai, methods=["POST"]),
        Route("/v1/models", openai.models, methods=["GET"]),
    ]
    middleware = [
        *_cors(names(settings.cors_origins)),
        Middleware(Door, metrics=service.metrics, settings=settings),
        Middleware(_RouteName, routes=routes),
    ]
    if not settings.hardened:
        routes += [Route("/openapi.json", _openapi(service), methods=["GET"]), *page.routes()]
    app = Starlette(routes=routes, middleware=middleware, exception_handlers={HTTPException: _as_problem})
    app.router.redirect_slashes = False
    return app


def _cors(origins: tuple[str, ...]) -> list[Middleware]:
    """Outside of the door, so that a browser may read refusals too; nothing where no origin is named."""
    if not origins:
        return []
    allowed = Middleware(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["authorization", "content-type", "x-request-id"],
        expose_headers=["x-request-id", "x-qwen3-seed", "x-finish-reason", "retry-after"],
    )
    return [allowed]


def _openapi(service: Service) -> Callable[[Request], Awaitable[Response]]:
    async def show(_: Request) -> Response:
        return JSONResponse(openapi.document(service))

    return show


class _RouteName:
    """Notes the matching route's template for the log, since a raw path may hold anything."""

    def __init__(self, app: ASGIApp, *, routes: list[BaseRoute]) -> None:
        self._app = app
        self._routes = [route for route in routes if isinstance(route, Route)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        for route in self._routes:
            if route.path_regex.match(scope["path"]):
                scope[ACCOUNT_KEY].route = route.path
        await self._app(scope, receive, send)


async def _as_problem(_: Request, error: Exception) -> Response:
    """Starlette's own refusals in this server's form; the door writes them."""
    if isinstance(error, HTTPException) and error.status_code == 405:
        allow = (error.headers or {}).get("Allow", "")
        raise Problem("method_not_allowed", f"this path takes {allow}", allow=allow)
    raise Problem("not_found", "nothing is served at this path; see /v1/capabilities and the documentation")
