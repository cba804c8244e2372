"""CUDA graphs for training: a whole step, drawn batch and optimiser included, replayed without the host.

A step must have fixed shapes and no host synchronisation. Where there is no CUDA, or capture is refused, the plain
step is used instead: slower, the same result.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

Step = Callable[[], None]
WARMUP = 3


def captured(step: Step, device: torch.device, report: Callable[[str], None]) -> tuple[Step, bool]:
    """A faster step that does the same, and whether it is a captured graph. Runs the step a few times on CUDA."""
    if device.type != "cuda":
        return step, False
    try:
        return _capture(step), True
    except RuntimeError as error:
        torch.cuda.synchronize()
        report(f"no captured graph ({str(error).splitlines()[0]}); training goes on step by step")
        return step, False


def _capture(step: Step) -> Step:
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARMUP):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay
