"""The page at `/`: type a text and a voice, hear it stream. Three static files, nothing from elsewhere.

A content security policy keeps the page to this server. In hardened mode none of this is routed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}


def routes() -> list[BaseRoute]:
    """Routes of the page and its two companions."""
    return [Route(path, _file(*entry), methods=["GET"]) for path, entry in FILES.items()]


def _file(name: str, media_type: str) -> Callable[[Request], Awaitable[Response]]:
    body = (resources.files("engine.server") / "static" / name).read_bytes()

    async def show(_: Request) -> Response:
        return Response(body, media_type=media_type, headers=HEADERS)

    return show
