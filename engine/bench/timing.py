"""Timing on a device: medians of events around graph replays, and the copy bandwidth that everything is held
against.
"""

# Streams and events of torch.cuda carry no types.
# mypy: disable-error-code="no-untyped-call,no-any-return"

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import torch

COPY_BYTES = 1 << 31
REPEATS = 7


def captured(body: Callable[[], None]) -> torch.cuda.CUDAGraph:
    """The body as a graph, after one run outside it (compilation, handles)."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        body()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        body()
    return graph


def milliseconds(run: Callable[[], object], *, inner: int = 1, repeats: int = REPEATS) -> float:
    """Median milliseconds of one call, each repeat timing `inner` calls between two events."""
    run()
    times = []
    for _ in range(repeats):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(inner):
            run()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) / inner)
    return median(times)


def copy_bandwidth(device: torch.device) -> float:
    """Bytes a second of a large device-to-device copy, read and written bytes counted."""
    source = torch.empty(COPY_BYTES // 4, dtype=torch.int32, device=device).random_()
    target = torch.empty_like(source)
    return 2 * COPY_BYTES / (milliseconds(lambda: target.copy_(source), inner=4) / 1e3)
