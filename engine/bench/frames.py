"""How long a captured frame, prefill and codec packet take, and what they take of the memory's speed."""

from __future__ import annotations

from typing import Any

import torch

from engine.bench.timing import milliseconds
from engine.frame_weights import FrameWeights, Matrix, StackWeights
from engine.graph_runner import GraphRunner

INNER = 10  # replays between two events


def replay_times(runner: GraphRunner) -> dict[str, float]:
    """Median milliseconds of every captured graph, replayed on its own stream with nothing beside it."""
    times = {}
    for graphs, stream in runner.captured:
        with torch.cuda.stream(stream):
            for name in graphs.report.captured:
                times[name] = milliseconds(lambda name=name, graphs=graphs: graphs.replay(name), inner=INNER)  # type: ignore[misc]
    return times


def frame_bytes(weights: FrameWeights) -> int:
    """Weight bytes that a frame of one row must read: every layer of the talker once, of the predictor once a
    codebook, the heads.
    """
    passes = len(weights.heads)
    heads = sum(_bytes(head) for head in (weights.codec_head, *weights.heads))
    return _layers(weights.talker) + passes * _layers(weights.predictor) + heads


def limit_milliseconds(weights: FrameWeights, bandwidth: float) -> float:
    """The shortest a frame can take at `bandwidth` bytes a second."""
    return frame_bytes(weights) / bandwidth * 1e3


def memory(device: torch.device) -> dict[str, Any]:
    """Bytes that torch holds and that the whole device has in use."""
    free, total = torch.cuda.mem_get_info(device)
    return {
        "allocated_bytes": torch.cuda.memory_allocated(device),
        "reserved_bytes": torch.cuda.memory_reserved(device),
        "device_bytes_in_use": total - free,
    }


def _layers(stack: StackWeights) -> int:
    return sum(_bytes(m) for layer in stack.layers for m in (layer.qkv, layer.out, layer.gate_up, layer.down))


def _bytes(matrix: Matrix) -> int:
    weight = matrix.weight if matrix.packed is None else matrix.packed
    return weight.numel() * weight.element_size()
