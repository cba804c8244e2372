"""When each part of a run began and ended, on the run's monotonic clock and in UTC.

Telemetry windows and plausibility checks hang on these, so a phase is logged by the code that runs it, with both
clocks read at both ends: a round leaves four events, the begin and the end of its warm-up and of its measurement. A
phase that is cut short by an error is logged too: it ended when it ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from qualification.bench.clock import Clock
from qualification.schema import urn

PhaseKind = Literal["idle", "setup", "warmup", "measure", "other"]


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One entry of `phases.json`."""

    kind: PhaseKind
    name: str
    profile: str | None
    round: int | None
    requests: int | None
    start_ns: int
    end_ns: int
    start_utc: str
    end_utc: str


class OpenPhase:
    """A phase that is going on; its owner counts the requests that it sends."""

    def __init__(self) -> None:
        self.requests: int | None = None


class PhaseLog:
    """The phases of one run in order of their start. Phases do not overlap."""

    def __init__(self, clock: Clock, *, keep: Callable[[Phase], None] = lambda _: None) -> None:
        """`keep` is handed each phase as it ends."""
        self._clock = clock
        self._keep = keep
        self._phases: list[Phase] = []
        self.zero_utc = utc_text(datetime.now(UTC).timestamp() - clock.now_ns() / 1e9)

    @contextmanager
    def phase(
        self, kind: PhaseKind, name: str, *, profile: str | None = None, round: int | None = None
    ) -> Iterator[OpenPhase]:
        """Log everything inside as one phase."""
        open_phase = OpenPhase()
        start_ns, start_utc = self._clock.now_ns(), utc_now()
        try:
            yield open_phase
        finally:
            phase = Phase(
                kind=kind,
                name=name,
                profile=profile,
                round=round,
                requests=open_phase.requests,
                start_ns=start_ns,
                end_ns=self._clock.now_ns(),
                start_utc=start_utc,
                end_utc=utc_now(),
            )
            self._phases.append(phase)
            self._keep(phase)

    @property
    def phases(self) -> tuple[Phase, ...]:
        return tuple(self._phases)

    def document(
        self, run_id: str, zero_utc: str | None = None, phases: Sequence[Mapping[str, Any]] | None = None
    ) -> dict[str, Any]:
        """The content of `phases.json`: of this log alone, or with the `phases` of all sessions and their common zero."""
        return {
            "schema": urn("phases"),
            "run_id": run_id,
            "clock": {"source": "monotonic", "zero_utc": zero_utc or self.zero_utc},
            "phases": [asdict(phase) for phase in self._phases] if phases is None else list(phases),
        }


def utc_now() -> str:
    """The moment in UTC, RFC 3339 with microseconds, ending in Z."""
    return utc_text(datetime.now(UTC).timestamp())


def utc_text(timestamp: float) -> str:
    """A POSIX time as RFC 3339 text in UTC."""
    return datetime.fromtimestamp(timestamp, UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"
