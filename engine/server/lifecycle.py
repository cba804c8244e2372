"""From the first accepted connection to the exit status: start-up, supervision, signals, draining, the watchdog.

1. Listening: `/health/live` answers while the engine loads in its own thread; readiness follows `engine.start()`.
2. SIGTERM or SIGINT, during start-up too: admission closes, active streams go on for the grace time, then get an
   error part. A second signal ends the grace time at once.
3. An engine that cannot start ends the process with its error's exit status; one that fails later leaves it up and
   unready until the watchdog (off by default) ends it.
4. Whatever hangs, the process is gone `LAST_RESORT_SECONDS` after the first signal.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

from engine.contract import CLOSE_SECONDS, CountingEngine, EngineState
from engine.errors import EngineError
from engine.server.backend import Phase
from engine.server.logs import fault
from engine.server.service import Service
from engine.server.session import Cause

LOG = logging.getLogger("engine.server")

EXIT_CLEAN = 0
EXIT_FORCED = 70  # shutdown did not finish in time: something hangs
EXIT_WATCHDOG = 75  # the engine became unusable and the watchdog is on

TICK_SECONDS = 0.1
FAREWELL_SECONDS = 5.5  # for error parts to leave: longer than the slow reader limit
ENGINE_CLOSE_SECONDS = CLOSE_SECONDS + 0.5  # the engine itself says whether its device hangs
LAST_RESORT_SECONDS = 33.0


class Lifecycle:
    """Runs beside the HTTP server in its event loop. `exit_code` holds once `stop_server` has been called."""

    def __init__(
        self, service: Service, stop_server: Callable[[], None], arm_last_resort: Callable[[], None] | None = None
    ) -> None:
        self.exit_code = EXIT_CLEAN
        self._arm_last_resort = arm_last_resort or _end_process_later
        self._service = service
        self._stop_server = stop_server
        self._hurry = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._unusable_since: float | None = None

    def begin(self) -> None:
        """Launch the engine and start supervising. Call inside the running loop."""
        loop = asyncio.get_running_loop()
        self._service.backend.launch(functools.partial(_call_soon, loop, self._started))
        self._spawn(self._supervise())

    def take_signals(self) -> None:
        """Take over SIGTERM and SIGINT. Main thread only."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled, number)

    def shut_down(self, exit_code: int) -> None:
        """Start draining; again: stop waiting for active streams."""
        if self._service.backend.phase is Phase.DRAINING:
            self._hurry.set()
            return
        self._service.backend.phase = Phase.DRAINING
        self.exit_code = exit_code
        self._arm_last_resort()
        self._spawn(self._drain())

    def _signalled(self, number: int) -> None:
        LOG.info("signal", extra={"fields": {"signal": signal.Signals(number).name}})
        self.shut_down(EXIT_CLEAN)

    def _started(self) -> None:
        backend = self._service.backend
        if backend.phase is Phase.DRAINING:
            return
        if backend.failure is not None:
            self._start_failed(backend.failure)
            return
        backend.phase = Phase.SERVING
        engine = backend.engine
        if engine is not None:
            self._service.metrics.slots.set(engine.info.max_concurrent_requests)
            if isinstance(engine, CountingEngine):
                counting = engine
                self._service.metrics.watch_engine(lambda: counting.counters)
        LOG.info("ready")

    def _start_failed(self, error: BaseException) -> None:
        detail = str(error) if isinstance(error, EngineError) else ""  # our own texts name the mend and hold no content
        LOG.error("engine_start_failed", extra={"fields": {**fault(error), "detail": detail}})
        self._service.backend.phase = Phase.BROKEN
        self.shut_down(error.exit_code if isinstance(error, EngineError) else 1)

    async def _supervise(self) -> None:
        backend, limit = self._service.backend, self._service.settings.watchdog_exit_seconds
        loop = asyncio.get_running_loop()
        while backend.phase is not Phase.DRAINING:
            await asyncio.sleep(TICK_SECONDS)
            self._service.metrics.ready.set(self._service.desk.ready)
            if backend.ready and backend.engine is not None:
                self._service.metrics.slots.set(backend.engine.info.max_concurrent_requests)
            if backend.phase is Phase.SERVING and backend.engine and backend.engine.state is EngineState.FAILED:
                backend.phase = Phase.BROKEN
                LOG.error("engine_failed")
            if backend.phase is Phase.BROKEN or self._service.desk.tombstones:
                self._unusable_since = self._unusable_since or loop.time()
                if limit and loop.time() - self._unusable_since > limit:
                    LOG.error("watchdog_exit")
                    self.shut_down(EXIT_WATCHDOG)

    async def _drain(self) -> None:
        desk, settings = self._service.desk, self._service.settings
        await self._until_idle(settings.grace_seconds, self._hurry)
        desk.cancel_all(Cause.SHUTDOWN)
        await self._until_idle(FAREWELL_SECONDS)
        await self._close_engine()
        desk.close()
        self._stop_server()

    async def _until_idle(self, seconds: float, hurry: asyncio.Event | None = None) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while self._service.desk.active and loop.time() < until and not (hurry and hurry.is_set()):
            await asyncio.sleep(TICK_SECONDS / 4)

    async def _close_engine(self) -> None:
        """Close the engine in a thread of its own: it may hang, and start-up cannot be interrupted."""
        engine = self._service.backend.engine
        if engine is None:
            return
        closing = _in_thread(engine.close, 0.0)
        loop = asyncio.get_running_loop()
        until = loop.time() + ENGINE_CLOSE_SECONDS
        while not closing.done() and loop.time() < until:
            await asyncio.sleep(TICK_SECONDS / 4)
        stopped = closing.done() and closing.exception() is None and closing.result()
        if not stopped and not self._service.backend.starting and self.exit_code == EXIT_CLEAN:
            LOG.error("engine_close_hangs")
            self.exit_code = EXIT_FORCED

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _in_thread(work: Callable[[float], bool], argument: float) -> Future[bool]:
    """Run `work` in a daemon thread, which may hang."""
    future: Future[bool] = Future()

    def run() -> None:
        try:
            future.set_result(work(argument))
        except BaseException as error:  # noqa: BLE001 - whoever asks for the result hears of it
            future.set_exception(error)

    threading.Thread(target=run, name="engine-close", daemon=True).start()
    return future


def _call_soon(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has closed: the process is ending
        loop.call_soon_threadsafe(work)


def _end_process_later() -> None:
    """A thread that ends the process whatever the event loop does."""

    def end() -> None:
        os._exit(EXIT_FORCED)

    timer = threading.Timer(LAST_RESORT_SECONDS, end)
    timer.daemon = True
    timer.start()
