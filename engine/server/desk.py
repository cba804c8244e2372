"""Admission: who holds a slot, under which id, and until when.

A slot is taken before the engine is asked and comes back once the engine has ended the request. A request that the
engine does not end leaves a tombstone, and the server stops admitting. Calls into the engine may block on its locks, so
they run in threads; cancellations have threads of their own and never wait behind submissions.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from engine.contract import SpeechEngine, SpeechRequest, SpeechStream
from engine.errors import CapacityExhausted, RequestError, RequestIdInUse
from engine.server.backend import Backend
from engine.server.logs import fault
from engine.server.metrics import Metrics
from engine.server.problems import RETRY_AFTER_SECONDS, Problem, from_engine
from engine.server.session import Cause, Patience, Session

LOG = logging.getLogger("engine.server")


@dataclass
class _Slot:
    """A taken slot; `session` is None while the engine is being asked, `cause` waits for it."""

    session: Session | None = None
    cause: Cause | None = None


class Desk:
    """The sessions of one server. Used from the event loop alone."""

    def __init__(self, backend: Backend, metrics: Metrics, patience: Patience) -> None:
        self.tombstones: set[UUID] = set()
        self._backend = backend
        self._metrics = metrics
        self._patience = patience
        self._slots: dict[UUID, _Slot] = {}
        self._submitting = ThreadPoolExecutor(4, thread_name_prefix="submit")
        self._cancelling = ThreadPoolExecutor(2, thread_name_prefix="cancel")

    @property
    def active(self) -> int:
        return len(self._slots)

    @property
    def ready(self) -> bool:
        return self._backend.ready and not self.tombstones

    def check(self, request_id: UUID) -> SpeechEngine:
        """The engine, where a request of this id would be admitted now: asked before its body is read.

        Raises:
            Problem: 409, 429, or 503 with the code that says why not.
        """
        engine = self._engine()
        self._require_room(request_id, engine)
        return engine

    def _engine(self) -> SpeechEngine:
        engine = self._backend.admitting()
        if self.tombstones:
            detail = "the engine did not end an earlier request; the server must be restarted"
            raise Problem("backend_unavailable", detail, retry_after=RETRY_AFTER_SECONDS)
        return engine

    @asynccontextmanager
    async def admitted(self, request: SpeechRequest, *, hold: bool = False) -> AsyncIterator[Session]:
        """A session that holds a slot until the engine's last event or, where `hold` is set, until it is released.

        Raises:
            Problem: 409, 429, 503, or what the engine refuses.
        """
        engine = self._engine()
        slot = self._reserve(request.request_id, engine)
        try:
            stream = await self._submit(engine, request)
        except BaseException:
            self._free(request.request_id)
            raise
        slot.session = session = Session(
            request=request,
            stream=stream,
            patience=self._patience,
            stop=lambda request_id: self._stop(engine, request_id),
            released=self._release,
            hold=hold,
        )
        self._metrics.occupancy.observe(self.active)
        if slot.cause is not None:
            session.cancel(slot.cause)
        try:
            yield session
        finally:
            await session.retire()
            if session.cause is not None:
                self._metrics.cancelled.labels(cause=session.cause.value).inc()

    def cancel(self, request_id: UUID) -> None:
        """Stop a live request.

        Raises:
            Problem: `request_not_found` once retired, `retirement_timeout` for a tombstone.
        """
        if request_id in self.tombstones:
            raise Problem("retirement_timeout", "the engine did not end this request when it was cancelled")
        slot = self._slots.get(request_id)
        if slot is None or (slot.session is not None and slot.session.ended):
            raise Problem("request_not_found", "no live request has this id; it may have ended")
        self._cancel(slot, Cause.DELETED)

    def cancel_all(self, cause: Cause) -> None:
        """Stop every live request."""
        for slot in list(self._slots.values()):
            self._cancel(slot, cause)

    def close(self) -> None:
        """Let go of the threads; those that hang in the engine are left to the process's end."""
        self._submitting.shutdown(wait=False, cancel_futures=True)
        self._cancelling.shutdown(wait=False, cancel_futures=True)

    def _require_room(self, request_id: UUID, engine: SpeechEngine) -> None:
        slots = engine.info.max_concurrent_requests
        if request_id in self._slots:
            raise from_engine(RequestIdInUse(request_id))
        if len(self._slots) >= slots:
            raise from_engine(CapacityExhausted(slots))

    def _reserve(self, request_id: UUID, engine: SpeechEngine) -> _Slot:
        self._require_room(request_id, engine)
        slot = self._slots[request_id] = _Slot()
        self._metrics.active.set(len(self._slots))
        return slot

    async def _submit(self, engine: SpeechEngine, request: SpeechRequest) -> SpeechStream:
        asked = self._submitting.submit(engine.submit, request)
        try:
            async with asyncio.timeout(self._patience.stall):
                return await asyncio.wrap_future(asked)
        except RequestError as error:
            raise from_engine(error) from None
        except TimeoutError:
            self._bury(request.request_id)
            raise Problem("retirement_timeout", "the engine did not answer in time") from None

    def _stop(self, engine: SpeechEngine, request_id: UUID) -> None:
        self._cancelling.submit(engine.cancel, request_id).add_done_callback(_report)

    def _release(self, session: Session) -> None:
        if session.lost:
            self._bury(session.request.request_id)
        self._free(session.request.request_id)

    def _bury(self, request_id: UUID) -> None:
        if request_id not in self.tombstones:
            self.tombstones.add(request_id)
            self._metrics.retirement_timeouts.inc()
            self._metrics.tombstones.set(len(self.tombstones))
            LOG.error("tombstone", extra={"fields": {"request_id": str(request_id)}})

    def _free(self, request_id: UUID) -> None:
        self._slots.pop(request_id, None)
        self._metrics.active.set(len(self._slots))

    def _cancel(self, slot: _Slot, cause: Cause) -> None:
        if slot.session is None:
            slot.cause = slot.cause or cause
        else:
            slot.session.cancel(cause)


def _report(done: Future[bool]) -> None:
    error = done.exception() if not done.cancelled() else None
    if error is not None:
        LOG.error("cancel_failed", extra={"fields": fault(error)})
