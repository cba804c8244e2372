"""A codec packet in work: asked for now, taken when it is there.

Samples become 16-bit numbers where they are made. No finite sample becomes the lowest of them, so it marks what is not
finite, and whoever takes a packet sees without another look at the device whether it is audio.
"""

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

PCM_SCALE = 32_767.0
NOT_FINITE = -32_768

Packet = bytes | None  # signed 16-bit little-endian PCM; None: some sample was not a finite number


def as_pcm(samples: Tensor) -> Tensor:
    """Whole numbers, still in floating point, of samples, limited to [-1, 1] here; `NOT_FINITE` for NaN and infinity."""
    limited = (samples.clamp(-1.0, 1.0) * PCM_SCALE).round_()
    return torch.where(samples.isfinite(), limited, float(NOT_FINITE))


def packets_of(pcm: np.ndarray[tuple[int, int], np.dtype[np.int16]]) -> list[Packet]:
    """A packet of each row [B, n]."""
    spoilt = (pcm == NOT_FINITE).any(axis=1)
    return [None if bad else row.astype("<i2", copy=False).tobytes() for row, bad in zip(pcm, spoilt, strict=True)]


class AudioWork(Protocol):
    """PCM of several rows that a device may still be making."""

    @property
    def ready(self) -> bool:
        """Whether `take` returns at once."""
        ...

    def take(self) -> list[Packet]:
        """The packet of each row in the order asked for; waits for the device."""
        ...


@dataclass(frozen=True, kw_only=True)
class FinishedAudio:
    """Made already."""

    packets: list[Packet]
    ready: bool = True

    def take(self) -> list[Packet]:
        return self.packets


@dataclass(frozen=True, kw_only=True)
class ThreadAudio:
    """In work on the host's codec thread; what fails there is raised by `take`."""

    packets: Future[list[Packet]]

    @property
    def ready(self) -> bool:
        return self.packets.done()

    def take(self) -> list[Packet]:
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

    def take(self) -> list[Packet]:
        packets: list[Packet] = []
        for part in self.parts:
            part.done.synchronize()
            packets += packets_of(part.samples[: part.rows, : self.frames * SAMPLES_PER_FRAME].numpy())
        return packets
