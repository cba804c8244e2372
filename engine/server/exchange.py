"""One HTTP request and its answer: identity, strict body, disconnects, and the account that the log keeps of it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from engine.server import requestid, strictjson
from engine.server.connection import SCOPE_KEY
from engine.server.outlet import Outlet
from engine.server.problems import Problem
from engine.server.session import Cause, Session
from engine.server.settings import ServerSettings

ACCOUNT_KEY = "assay.account"


@dataclass(kw_only=True)
class Account:
    """What is written down about an exchange: no content."""

    started: float = field(default_factory=time.perf_counter)
    request_id: UUID | None = None
    status: int = 0
    route: str = "-"  # the template: a raw path may hold anything
    fields: dict[str, Any] = field(default_factory=dict)


class Exchange:
    """A POST with a JSON body, in one place."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, settings: ServerSettings) -> None:
        self.headers = Headers(scope=scope)
        self.account: Account = scope[ACCOUNT_KEY]
        self.outlet = Outlet(send, scope.get(SCOPE_KEY), settings.slow_reader_seconds)
        self._receive = receive
        self._settings = settings
        self.whole_at = 0.0  # perf_counter when the body had arrived

    def identify(self) -> UUID:
        """The request's id; from here on every answer carries it.

        Raises:
            Problem: `invalid_request_id`.
        """
        self.account.request_id = requestid.from_headers(self.headers.getlist("x-request-id"))
        return self.account.request_id

    async def read_json(self) -> dict[str, Any]:
        """The body as a JSON object.

        Raises:
            Problem: 400, 408, 413 or 415.
        """
        self._check_media_type()
        limit = self._settings.body_limit
        declared = self.headers.get("content-length", "")
        if declared.isdigit() and int(declared[:20]) > limit:
            raise _too_large(limit)
        try:
            async with asyncio.timeout(self._settings.request_read_seconds):
                body = await self._body(limit)
        except TimeoutError:
            raise Problem("request_timeout", "the body did not arrive in time; send it at once") from None
        self.whole_at = time.perf_counter()
        try:
            return strictjson.read_object(body)
        except strictjson.MalformedJson as error:
            raise Problem("malformed_json", str(error)) from None

    @asynccontextmanager
    async def watching(self, session: Session) -> AsyncIterator[None]:
        """Cancel the session as soon as the client leaves or stops reading."""
        self.outlet.on_stall = lambda: session.cancel(Cause.SLOW_READER)
        watcher = asyncio.create_task(self._watch(session))
        try:
            yield
        finally:
            watcher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watcher

    async def _watch(self, session: Session) -> None:
        message: Message = {"type": "http.request"}
        while message["type"] != "http.disconnect":
            message = await self._receive()
        self.outlet.closed = True
        session.cancel(Cause.DISCONNECTED)

    async def _body(self, limit: int) -> bytes:
        body = bytearray()
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            body += message.get("body", b"")
            if len(body) > limit:
                raise _too_large(limit)
            if not message.get("more_body", False):
                return bytes(body)

    def _check_media_type(self) -> None:
        kind, _, parameters = self.headers.get("content-type", "").partition(";")
        charset = parameters.replace('"', "").replace(" ", "").lower()
        if kind.strip().lower() != "application/json" or charset not in ("", "charset=utf-8"):
            raise Problem("unsupported_media_type", "send Content-Type: application/json, in UTF-8")
        if self.headers.get("content-encoding", "identity").lower() != "identity":
            raise Problem("unsupported_media_type", "send the body without a Content-Encoding")


class Disconnected(Exception):
    """The client left before its request was whole; there is nobody to answer."""


def _too_large(limit: int) -> Problem:
    return Problem("request_too_large", f"the body may have at most {limit} bytes; shorten it")
