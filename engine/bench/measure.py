"""The measurements of `python -m engine bench` as one document."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from engine.bench import correctness, frames, kernels
from engine.bench.timing import copy_bandwidth
from engine.checkpoint import LoadedModel, load_model
from engine.device import check_memory
from engine.graph_runner import GraphRunner
from engine.kernels.linear import FEW
from engine.rows import RowLimits
from engine.shape.weights import synthetic_model, write_shape_files

SCHEMA = "urn:assay:engine-bench:v1"
BATCHES = (1, 3, 6, 16, 32, 64)
TEACHER_FRAMES = 128
KERNEL_ROWS = (1, 16, 64)


def measure(arguments: argparse.Namespace, device: torch.device) -> dict[str, Any]:
    """Everything as one document."""
    bandwidth = copy_bandwidth(device)
    torch.cuda.empty_cache()
    _say(f"copy {bandwidth / 1e12:.2f} TB/s")
    started = time.perf_counter()
    model = _model(arguments.model, device)
    loaded = time.perf_counter() - started
    limits = RowLimits(rows=arguments.rows, positions=arguments.positions, frames=arguments.positions // 2)
    check_memory(model, limits)
    checks: dict[str, Any] = {}
    if not arguments.no_checks:
        checks = {
            "teacher_forced": correctness.teacher_forced(model, frames=TEACHER_FRAMES),
            "batch_matrix": correctness.batch_matrix(model, [size for size in BATCHES if size <= arguments.rows]),
        }
        _say(json.dumps(checks))
    torch.cuda.empty_cache()
    started = time.perf_counter()
    runner = GraphRunner(model, limits, int8=arguments.int8)
    captured = time.perf_counter() - started
    _say(f"model {loaded:.1f} s, capture {captured:.1f} s")
    used = frames.memory(device)
    times = frames.replay_times(runner)
    limit = frames.limit_milliseconds(runner.weights, bandwidth)
    _say(f"limit {limit:.2f} ms a frame; " + ", ".join(f"{name} {ms:.2f} ms" for name, ms in times.items()))
    report = runner.quantisation
    products = []
    for rows in _kernel_rows(arguments):
        products += kernels.shares(rows, int8=arguments.int8, bandwidth=bandwidth)
        _say(", ".join(f"{each['product']} {each['share_of_copy']:.0%}" for each in products if each["rows"] == rows))
    return {
        "schema": SCHEMA,
        "device": torch.cuda.get_device_name(device),
        "torch": torch.__version__,
        "model": "synthetic weights of the published shapes" if arguments.model is None else arguments.model.name,
        "precision": "int8" if arguments.int8 else "bf16",
        "copy_bytes_per_second": bandwidth,
        "frame_bytes": frames.frame_bytes(runner.weights),
        "frame_limit_milliseconds": limit,
        "load_seconds": loaded,
        "capture_seconds": captured,
        "memory": used,
        "graph_milliseconds": times,
        "products": products,
        "checks": checks,
        "quantisation": None
        if report is None
        else {"matrices": len(report.quantised), "worst_error": report.worst_error},
    }


def _kernel_rows(arguments: argparse.Namespace) -> tuple[int, ...]:
    if not arguments.kernels:
        return ()
    return tuple(range(1, FEW + 1)) if arguments.int8 else KERNEL_ROWS  # INT8 weights are read for a few rows only


def _model(directory: Path | None, device: torch.device) -> LoadedModel:
    if directory is not None:
        return load_model(directory, device=device, dtype=torch.bfloat16)
    with tempfile.TemporaryDirectory() as place:
        write_shape_files(Path(place), seed=0)
        return synthetic_model(Path(place), device=device, dtype=torch.bfloat16)


def _say(line: str) -> None:
    print(line, flush=True)
