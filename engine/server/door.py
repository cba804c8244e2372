"""The outermost layer: token and rate limits, refusals turned into problem documents, one log line an exchange."""

from __future__ import annotations

import hmac
import logging
import time
from collections import OrderedDict

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.server import page
from engine.server.connection import SCOPE_KEY
from engine.server.exchange import ACCOUNT_KEY, Account, Disconnected
from engine.server.logs import fault
from engine.server.metrics import Metrics
from engine.server.problems import Problem
from engine.server.settings import ServerSettings

LOG = logging.getLogger("engine.server")
OPEN_PATHS = frozenset(
    {"/health/live", "/health/ready", *page.FILES}
)  # the page holds no secret and asks for the token
SPEECH_PATHS = frozenset({"/v1/voice-design/speech", "/v1/audio/speech"})
ADDRESSES_KEPT = 4_096


class RateLimit:
    """A token bucket for each client address; the least recent addresses are forgotten."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # address: (tokens, at)

    def admit(self, address: str, now: float) -> bool:
        """Take one token; False when the bucket is empty."""
        tokens, at = self._buckets.pop(address, (float(self._per_minute), now))
        tokens = min(self._per_minute, tokens + (now - at) * self._per_minute / 60)
        allowed = tokens >= 1
        self._buckets[address] = (tokens - 1 if allowed else tokens, now)
        if len(self._buckets) > ADDRESSES_KEPT:
            self._buckets.popitem(last=False)
        return allowed


class Door:
    """ASGI middleware around the whole application; nothing that fails inside gets past it."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, settings: ServerSettings) -> None:
        self._app = app
        self._metrics = metrics
        self._token = settings.auth_token()
        self._header_limit = settings.max_header_bytes
        self._rate = RateLimit(settings.requests_per_minute) if settings.requests_per_minute else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        account = scope[ACCOUNT_KEY] = Account()

        async def noting_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                account.status = message["status"]
                if account.request_id is not None:
                    message["headers"].append((b"x-request-id", str(account.request_id).encode()))
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, receive, noting_send)
        except Disconnected:
            account.fields["outcome"] = "disconnected"  # nobody is left to answer
        except Problem as problem:
            await self._refuse(problem, scope, account, noting_send)
        except Exception as error:  # noqa: BLE001 - the last stop: one failed request must not show its insides
            LOG.error("fault", extra={"fields": fault(error)})
            internal = Problem("internal_error", "the server failed on this request; others are not affected")
            await self._refuse(internal, scope, account, noting_send)
        finally:
            _log(scope, account)

    def _check(self, scope: Scope) -> None:
        path, headers = scope["path"], Headers(scope=scope)
        if sum(len(name) + len(value) + 4 for name, value in scope["headers"]) > self._header_limit:
            raise Problem("headers_too_large", f"the headers may have at most {self._header_limit} bytes")
        if {"content-length", "transfer-encoding"} <= set(headers):  # a proxy in front may have read the other one
            raise Problem("malformed_request", "give the body's length once: Content-Length or Transfer-Encoding")
        if self._token is not None and path not in OPEN_PATHS and scope["method"] != "OPTIONS":
            kind, _, given = headers.get("authorization", "").partition(" ")
            if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token.encode()):
                raise Problem("unauthorized", "send Authorization: Bearer with this server's token")
        if self._rate is not None and path in SPEECH_PATHS:
            address = (scope.get("client") or ("",))[0]
            if not self._rate.admit(address, time.monotonic()):
                raise Problem("rate_limited", "this address made too many requests; slow down", retry_after=60)

    async def _refuse(self, problem: Problem, scope: Scope, account: Account, send: Send) -> None:
        account.fields["code"] = problem.code
        if account.status:  # the answer has begun: the client must see it broken
            connection = scope.get(SCOPE_KEY)
            if connection is not None:
                connection.hang_up()
            return
        if scope["path"] in SPEECH_PATHS and "outcome" not in account.fields:
            self._metrics.rejected.labels(code=problem.code).inc()
        body = problem.body(str(account.request_id) if account.request_id else None)
        headers = {**problem.headers(), "content-length": str(len(body))}
        pairs = [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": problem.status, "headers": pairs})
        await send({"type": "http.response.body", "body": body})


def _log(scope: Scope, account: Account) -> None:
    fields = {
        "method": scope["method"] if scope["method"].isalpha() else "-",
        "route": account.route,
        "status": account.status,
        "ms": round((time.perf_counter() - account.started) * 1e3, 2),
        **account.fields,
    }
    if account.request_id is not None:
        fields["request_id"] = str(account.request_id)
    LOG.info("request", extra={"fields": fields})
