"""A client that holds one slot for a fixed length of audio and notes when each part of it came."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field

from engine.contract import SAMPLE_RATE_HZ
from tests.engine.server.client import speech_bytes
from tests.engine.server.conftest import Process

TEXT = "The river is wide here, and the boats go slowly from one side to the other. " * 8
STREAM_SECONDS = 12.0
FROM_SECONDS, TO_SECONDS = 1.0, 11.0  # of audio: the window


@dataclass
class Listener:
    """One admitted stream: when each audio part came, and what it was."""

    seed: int
    at: list[tuple[float, int]] = field(default_factory=list)  # (seconds of the clock, samples heard so far)
    reason: str = ""

    def listen(self, server: Process) -> None:
        samples = 0
        with server.wire() as wire:
            wire.ask(speech_bytes(TEXT, seed=self.seed, max_duration_seconds=STREAM_SECONDS))
            for part in wire.parts():
                if part.is_audio:
                    samples += len(part.body) // 2
                    self.at.append((time.perf_counter(), samples))
                else:
                    self.reason = part.document.get("finish_reason", "")

    @property
    def heard(self) -> float:
        """Seconds of audio so far."""
        return self.at[-1][1] / SAMPLE_RATE_HZ if self.at else 0.0

    @property
    def whole(self) -> bool:
        """Whether it ended at its ceiling, with every sample."""
        return self.reason == "length" and self.heard == STREAM_SECONDS

    def _window(self) -> list[tuple[float, int]]:
        return [entry for entry in self.at if FROM_SECONDS <= entry[1] / SAMPLE_RATE_HZ <= TO_SECONDS]

    @property
    def rtf(self) -> float:
        (began, first), *_, (ended, last) = self._window()
        return (ended - began) / ((last - first) / SAMPLE_RATE_HZ)

    @property
    def gaps(self) -> list[float]:
        """Waits from part to part, in milliseconds."""
        times = [at for at, _ in self._window()]
        return [(later - earlier) * 1e3 for earlier, later in itertools.pairwise(times)]

    @property
    def underruns(self) -> int:
        """Parts in the window that came after a player had run out of sound which began with the first part."""
        starved, clock, played = 0, self.at[0][0], 0
        for at, samples in self.at:
            if at > clock:
                starved += FROM_SECONDS <= samples / SAMPLE_RATE_HZ <= TO_SECONDS
                clock = at
            clock += (samples - played) / SAMPLE_RATE_HZ
            played = samples
        return starved
