"""Captured graphs: recorded before service, replayed in it, and nothing else.

A `GraphSet` holds named graphs and counts their replays; a shape without a graph is refused, never run operator by
operator. The driver behind it is a protocol of one method, so that the set's rules are tested without an accelerator.
`write_static` is the only way into a graph's input.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import torch
from torch import Tensor

from engine.errors import DeviceError, UsageError

Replay = Callable[[], None]


class GraphDriver(Protocol):
    def capture(self, body: Callable[[], None]) -> Replay:
        """Run `body` once, record it, and return what replays it on the current stream."""
        ...


class CudaGraphDriver:
    """Records on one stream into one memory pool; graphs of one driver must not run at the same time as each other."""

    def __init__(self, stream: torch.cuda.Stream) -> None:
        self._stream = stream
        self._pool = torch.cuda.graph_pool_handle()

    def capture(self, body: Callable[[], None]) -> Replay:
        with torch.cuda.stream(self._stream):
            body()
        self._stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"):
            body()
        return graph.replay


@dataclass(frozen=True, kw_only=True)
class GraphReport:
    """What was captured and what was done with it; `eager_fallbacks` is zero by construction and reported all the
    same.
    """

    captured: tuple[str, ...]
    replays: dict[str, int]
    eager_fallbacks: int = 0


class GraphSet:
    """Named graphs of one driver."""

    def __init__(self, driver: GraphDriver) -> None:
        self._driver = driver
        self._graphs: dict[str, Replay] = {}
        self._replays: dict[str, int] = {}

    def capture(self, name: str, body: Callable[[], None]) -> None:
        """Record `body` as `name`.

        Raises:
            DeviceError: the name of the graph, why it could not be captured, what lowers its need.
        """
        assert name not in self._graphs, f"graph {name!r} is captured twice"
        try:
            self._graphs[name] = self._driver.capture(body)
        except torch.cuda.OutOfMemoryError as error:
            raise DeviceError(
                f"no memory for graph {name!r} ({error}); lower --max-concurrent-requests or --max-positions"
            ) from error
        except Exception as error:
            raise DeviceError(f"graph {name!r} cannot be captured: {error}") from error
        self._replays[name] = 0

    def replay(self, name: str) -> None:
        """Replay a captured graph on the current stream.

        Raises:
            DeviceError: no such graph; nothing was run.
        """
        graph = self._graphs.get(name)
        if graph is None:
            raise DeviceError(f"graph {name!r} was not captured; captured are {', '.join(self._graphs) or 'none'}")
        self._replays[name] += 1
        graph()

    @property
    def replays(self) -> int:
        return sum(self._replays.values())

    @property
    def report(self) -> GraphReport:
        return GraphReport(captured=tuple(self._graphs), replays=dict(self._replays))


def check_buckets(name: str, buckets: Sequence[int], *, reach: int) -> tuple[int, ...]:
    """The buckets that a capacity of `reach` needs: those below it, and the first that covers it.

    Raises:
        UsageError: empty, not rising, below one, or not reaching `reach`.
    """
    rising = all(left < right for left, right in pairwise(buckets))
    if not buckets or buckets[0] < 1 or not rising:
        raise UsageError(f"{name} buckets must be rising numbers from 1 on, not {list(buckets)}")
    if buckets[-1] < reach:
        raise UsageError(f"{name} buckets end at {buckets[-1]}, below the {reach} that are needed; add a larger one")
    return tuple(buckets[: bisect_left(buckets, reach) + 1])


def bucket_for(name: str, count: int, buckets: Sequence[int]) -> int:
    """The smallest bucket that holds `count`.

    Raises:
        DeviceError: none does.
    """
    place = bisect_left(buckets, count)
    if count < 1 or place == len(buckets):
        raise DeviceError(f"{name} {count} fits none of the captured buckets {list(buckets)}")
    return buckets[place]


def write_static(target: Tensor, values: Tensor, name: str) -> None:
    """Copy `values` into a graph's static input, in the order of the current stream; shape and type must be the
    input's own.
    """
    if target.shape != values.shape or target.dtype is not values.dtype:
        raise DeviceError(
            f"static input {name!r} is {target.dtype}{list(target.shape)}, was given {values.dtype}{list(values.shape)}"
        )
    target.copy_(values, non_blocking=True)
