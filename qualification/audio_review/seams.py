"""Clicks where packets join: is the sample at a packet's border less foreseeable than at other borders of codec frames?

Around a place the wave is predicted from its own past (20 coefficients, fitted to 15 ms on each side without the place
itself); the score is the largest error at the two samples that meet there, in units of the usual error. A codec may
leave its own mark on the grid of 1,920 samples, so packet borders are compared with borders of frames inside packets,
which no packet ever cut. What a score can find depends on how loud and how noisy the speech is; so clicks of known size
are planted in copies of the same utterances, and the share that is found is reported beside the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from qualification.bench import statistics
from qualification.bench.raw import SAMPLES_PER_FRAME, Packet
from qualification.clip import FULL_SCALE

ORDER: Final = 20
HALF: Final = 360  # samples on each side
GUARD: Final = 2  # samples before the place that are left out of the fit; after it, as many as the prediction reaches
CLICK_SIZES: Final = (0.003, 0.006, 0.0125, 0.025, 0.05, 0.1, 0.2)  # of full scale
DECAY_SAMPLES: Final = 120  # 5 ms: a jump that the wave forgets again, as a codec with a wrong left context makes it
_STABILISER: Final = 100.0  # added to the mean square of each coefficient's input, against a singular fit
_LEAST_ERROR: Final = 4.0  # steps of the 16-bit scale
_DIGITS: Final = 6
Pcm = npt.NDArray[np.int16]
Array = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Utterance:
    """[samples] at 24 kHz and the packets that they came in."""

    pcm: Pcm
    packets: tuple[Packet, ...]

    @property
    def borders(self) -> tuple[int, ...]:
        """First samples of all packets but the first."""
        return tuple(packet.first_sample for packet in self.packets[1:])

    @property
    def controls(self) -> tuple[int, ...]:
        """Borders of frames inside packets."""
        cut = {packet.first_sample for packet in self.packets}
        return tuple(at for at in range(SAMPLES_PER_FRAME, self.pcm.size, SAMPLES_PER_FRAME) if at not in cut)


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """Of `planted` clicks of `size` (share of full scale), how many scored above the limit; and the share of borders above
    the controls' 95 % quantile when every border carries one."""

    size: float
    planted: int
    found: int
    share_above: float | None


@dataclass(frozen=True, kw_only=True)
class Seams:
    """All borders of a bundle.

    Attributes:
        borders, controls: places that could be scored.
        highest: largest score of a border; None without any.
        clicks: borders that score above the limit.
        control_p95: 95 % quantile of the controls; above: borders beyond it, 5 % of them by chance; None without controls.
    """

    borders: int
    controls: int
    highest: float | None
    clicks: int
    control_p95: float | None
    above: int | None
    sensitivity: tuple[Sensitivity, ...]


def examine(utterances: Sequence[Utterance], limit: float) -> Seams:
    """Score every border and control, then plant clicks; `limit` is the score that calls a border a click."""
    borders = [score for one in utterances for score in scores(one.pcm, one.borders)]
    controls = [score for one in utterances for score in scores(one.pcm, one.controls)]
    usual = statistics.quantile(controls, statistics.P95) if controls else None
    return Seams(
        borders=len(borders),
        controls=len(controls),
        highest=max(borders, default=None),
        clicks=_above(borders, limit),
        control_p95=usual,
        above=None if usual is None else _above(borders, usual),
        sensitivity=tuple(_sensitivity(utterances, size, limit, usual) for size in CLICK_SIZES) if borders else (),
    )


def scores(pcm: Pcm, places: Iterable[int]) -> list[float]:
    """Score of each place that has enough samples around it."""
    wave = pcm.astype(np.float64)
    return [_score(wave, at) for at in places if HALF + ORDER <= at <= wave.size - HALF]


def plant(pcm: Pcm, places: Iterable[int], size: float) -> Pcm:
    """A copy with a jump of `size` of full scale at each place, up and down in turn, that decays within 5 ms."""
    wave = pcm.astype(np.float64)
    for number, at in enumerate(places):
        jump = (-1) ** number * size * FULL_SCALE * np.exp(-np.arange(4 * DECAY_SAMPLES) / DECAY_SAMPLES)
        wave[at : at + jump.size] += jump[: wave.size - at]
    return np.clip(np.round(wave), -FULL_SCALE, FULL_SCALE - 1).astype(np.int16)


def _score(wave: Array, at: int) -> float:
    past = np.lib.stride_tricks.sliding_window_view(wave[at - HALF - ORDER : at + HALF - 1], ORDER)  # [2 x HALF, ORDER]
    present = wave[at - HALF : at + HALF]
    fitted = np.ones(present.size, dtype=np.bool_)
    fitted[HALF - GUARD : HALF + ORDER + 1] = False
    inputs, outputs = past[fitted], present[fitted]
    normal = inputs.T @ inputs + np.eye(ORDER) * _STABILISER * len(inputs)
    errors = present - past @ np.linalg.solve(normal, inputs.T @ outputs)
    usual = np.sqrt(np.square(errors[fitted]).mean() + _LEAST_ERROR**2)
    return round(float(np.abs(errors[HALF - 1 : HALF + 1]).max() / usual), _DIGITS)


def _sensitivity(utterances: Sequence[Utterance], size: float, limit: float, usual: float | None) -> Sensitivity:
    found = [score for one in utterances for score in scores(plant(one.pcm, one.borders, size), one.borders)]
    share = None if usual is None else _above(found, usual) / len(found)
    return Sensitivity(size=size, planted=len(found), found=_above(found, limit), share_above=share)


def _above(values: Iterable[float], limit: float) -> int:
    return sum(1 for value in values if value > limit)
