"""The engine's life as the server sees it: made and started in its own thread, then ready, failed or draining.

Every question a request has to ask the engine before admission is answered here. Not covered: requests (`desk`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import StrEnum

from engine.contract import SAMPLE_RATE_HZ, SAMPLES_PER_FRAME, ComposedEngine, EngineInfo, EngineState, SpeechEngine
from engine.server.bodies import Bounds
from engine.server.problems import RETRY_AFTER_SECONDS, Problem
from engine.server.settings import ServerSettings


class Phase(StrEnum):
    """Life of the server."""

    STARTING = "starting"
    SERVING = "serving"
    BROKEN = "broken"
    DRAINING = "draining"


class Backend:
    """Holds the engine. All but the starting thread's own work happens in the event loop."""

    def __init__(self, make_engine: Callable[[], SpeechEngine], settings: ServerSettings) -> None:
        self.phase = Phase.STARTING
        self.engine: SpeechEngine | None = None
        self.failure: BaseException | None = None
        self._make = make_engine
        self._settings = settings
        self._thread: threading.Thread | None = None

    def launch(self, done: Callable[[], None]) -> None:
        """Make and start the engine in a thread; `done` runs there afterwards, with `failure` set or not."""

        def work() -> None:
            try:
                self.engine = self._make()
                self.engine.start()
            except BaseException as error:  # noqa: BLE001 - carried to the event loop, which ends the process
                self.failure = error
            done()

        self._thread = threading.Thread(target=work, name="engine-start", daemon=True)
        self._thread.start()

    @property
    def starting(self) -> bool:
        """True while the starting thread is at work, which nothing can interrupt."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def ready(self) -> bool:
        return self.phase is Phase.SERVING and self.engine is not None and self.engine.state is EngineState.READY

    @property
    def complaint(self) -> str | None:
        """What an engine made of several finds wrong with itself. It may serve nevertheless."""
        return self.engine.complaint if self.ready and isinstance(self.engine, ComposedEngine) else None

    @property
    def info(self) -> EngineInfo | None:
        """What the engine says of itself, once it has started."""
        started = self.engine is not None and self.phase is not Phase.STARTING and not self.starting
        return self.engine.info if started and self.engine is not None else None

    def admitting(self) -> SpeechEngine:
        """The engine, where it takes requests.

        Raises:
            Problem: `server_shutting_down` or `backend_unavailable`.
        """
        if self.phase is Phase.DRAINING:
            raise Problem("server_shutting_down", "the server is shutting down; send the request elsewhere")
        if not self.ready or self.engine is None:
            starting = self.phase is Phase.STARTING or (self.engine and self.engine.state is EngineState.STARTING)
            why = "still starting" if starting else "not usable; the server must be restarted"
            raise Problem("backend_unavailable", f"the engine is {why}", retry_after=RETRY_AFTER_SECONDS)
        return self.engine

    def bounds(self, info: EngineInfo) -> Bounds:
        """The limits in force for a request."""
        engine_seconds = info.max_codec_frames * SAMPLES_PER_FRAME / SAMPLE_RATE_HZ
        return Bounds(
            max_text_bytes=self._settings.max_text_bytes,
            max_voice_description_bytes=self._settings.max_voice_description_bytes,
            max_duration_seconds=min(self._settings.max_duration_seconds or engine_seconds, engine_seconds),
        )
