"""What every endpoint of one server shares."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.routing import BaseRoute

from engine.contract import EngineInfo, SpeechEngine
from engine.server.backend import Backend
from engine.server.desk import Desk
from engine.server.metrics import Metrics
from engine.server.session import Patience
from engine.server.settings import ServerSettings, names


@dataclass(frozen=True, kw_only=True)
class Service:
    """Settings, engine, admission and metrics of one server."""

    settings: ServerSettings
    backend: Backend
    desk: Desk
    metrics: Metrics
    routes: tuple[BaseRoute, ...] = ()  # beside the server's own
    created: int = field(default_factory=lambda: int(time.time()))  # Unix seconds

    def models(self, info: EngineInfo) -> tuple[str, ...]:
        """Names that the OpenAI-shaped endpoint takes as `model`."""
        return (info.model, *names(self.settings.model_aliases))


def build(
    settings: ServerSettings, make_engine: Callable[[], SpeechEngine], routes: tuple[BaseRoute, ...] = ()
) -> Service:
    """Wire the parts together; nothing starts yet. `routes` are served beside the server's own."""
    metrics = Metrics()
    backend = Backend(make_engine, settings)
    patience = Patience(stall=settings.stall_seconds, retirement=settings.retirement_seconds)
    desk = Desk(backend, metrics, patience)
    return Service(settings=settings, backend=backend, desk=desk, metrics=metrics, routes=routes)
