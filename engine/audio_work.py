"""A codec packet in work: asked for now, taken when it is there."""

# Events of torch.cuda carry no types.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from engine.contract import SAMPLES_PER_FRAME


class AudioWork(Protocol):
    """PCM of several rows that a device may still be making."""

    @property
    def ready(self) -> bool:
        """Whether `take` returns at once."""
        ...

    def take(self) -> list[bytes]:
        """PCM of each row in the order asked for, signed 16-bit little-endian; waits for the device."""
        ...


@dataclass(frozen=True, kw_only=True)
class FinishedAudio:
    """Made already."""

    packets: list[bytes]
    ready: bool = True

    def take(self) -> list[bytes]:
        return self.packets


@dataclass(frozen=True, kw_only=True)
class ThreadAudio:
    """In work on the host's codec thread; what fails there is raised by `take`."""

    packets: Future[list[bytes]]

    @property
    def ready(self) -> bool:
        return self.packets.done()

    def take(self) -> list[bytes]:
        return self.packets.result()


@dataclass(frozen=True, kw_only=True)
class AudioPart:
    """Samples [B, n] INT16 on their way to pinned memory, there once `done` has happened; `rows` of them are wanted."""

    samples: Tensor
    rows: int
    done: torch.cuda.Event


@dataclass(frozen=True, kw_only=True)
class DeviceAudio:
    """Parts that a device copies back on its own; `frames` of each row are wanted."""

    parts: Sequence[AudioPart]
    frames: int

    @property
    def ready(self) -> bool:
        return all(part.done.query() for part in self.parts)

    def take(self) -> list[bytes]:
        packets: list[bytes] = []
        for part in self.parts:
            part.done.synchronize()
            wanted = part.samples[: part.rows, : self.frames * SAMPLES_PER_FRAME].numpy()
            packets += [row.astype(np.dtype("<i2"), copy=False).tobytes() for row in wanted]
        return packets
