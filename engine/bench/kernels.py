"""Micro-benchmark of the matrix kernels at the published shapes: microseconds a launch and share of the copy bandwidth.

Every launch reads another weight, so that nothing comes from the cache, and launches follow one another in a graph as
they do in a frame. With candidates the same loop chooses launch shapes.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import torch

from engine.bench.timing import captured, milliseconds
from engine.frame_weights import Matrix
from engine.kernels.launch import Launch, default_launch
from engine.kernels.linear import Stream, Tile, ahead_of, linear, programs
from engine.kernels.tiles import tile_for

COLD_BYTES = 400 << 20  # several times the second-level cache
COMPILERS = 14


@dataclass(frozen=True, kw_only=True)
class Product:
    """One matrix product of a frame: [rows, inner] x [columns, inner]."""

    name: str
    inner: int
    columns: int
    norm: bool = False
    gated: bool = False
    residual: bool = False
    times: int = 1  # how often a frame does it

    @property
    def weights(self) -> int:
        return self.inner * self.columns


PRODUCTS = (
    Product(name="talker qkv", inner=2048, columns=4096, norm=True, times=28),
    Product(name="talker out", inner=2048, columns=2048, residual=True, times=28),
    Product(name="talker gate_up", inner=2048, columns=12_288, norm=True, gated=True, times=28),
    Product(name="talker down", inner=6144, columns=2048, residual=True, times=28),
    Product(name="predictor qkv", inner=1024, columns=4096, norm=True, times=75),
    Product(name="predictor out", inner=2048, columns=1024, residual=True, times=75),
    Product(name="predictor gate_up", inner=1024, columns=6144, norm=True, gated=True, times=75),
    Product(name="predictor down", inner=3072, columns=1024, residual=True, times=75),
    Product(name="predictor head", inner=1024, columns=2048, norm=True, times=15),
)


@dataclass(frozen=True, kw_only=True)
class Timed:
    """One product with one tile."""

    product: Product
    rows: int
    int8: bool
    launch: Launch
    tile: Tile
    microseconds: float
    bytes_per_second: float


@dataclass(frozen=True, kw_only=True)
class Trial:
    product: Product
    rows: int
    int8: bool
    launch: Launch
    tile: Tile


def default_trials(rows: int, *, int8: bool, launch: Launch) -> list[Trial]:
    """Every product with the tile that the engine gives it."""
    trials = []
    for product in PRODUCTS:
        shape = torch.empty(product.columns, product.inner, device="meta")
        matrix = Matrix(weight=shape, packed=shape if int8 else None)
        tile = tile_for(rows, matrix, gated=product.gated)
        trials.append(Trial(product=product, rows=rows, int8=int8, launch=launch, tile=tile))
    return trials


def shares(rows: int, *, int8: bool, bandwidth: float) -> list[dict[str, Any]]:
    """Every product at `rows` rows: microseconds a launch, and share of the copy `bandwidth` in bytes a second."""
    launch = default_launch(torch.device("cuda"))
    timed = [time_trial(trial) for trial in default_trials(rows, int8=int8, launch=launch)]
    return [
        {
            "product": each.product.name, "rows": rows, "times_a_frame": each.product.times,
            "microseconds": each.microseconds, "share_of_copy": each.bytes_per_second / bandwidth,
        }
        for each in timed
    ]  # fmt: skip


def compile_all(trials: Iterable[Trial]) -> None:
    """Fill the compilation cache with every trial's kernel, several at a time."""
    with ProcessPoolExecutor(COMPILERS, mp_context=get_context("spawn")) as pool:
        list(pool.map(_launch_once, trials))


def time_trial(trial: Trial) -> Timed:
    """Time a trial's launches in a graph over distinct weights."""
    product = trial.product
    size = product.weights * (1 if trial.int8 else 2)
    copies = max(2, min(COLD_BYTES // size, 64))
    matrices = [_matrix(product, int8=trial.int8) for _ in range(copies)]
    launches = _launcher(trial, matrices)
    graph = captured(launches)
    each = milliseconds(graph.replay, inner=3) * 1e3 / copies
    return Timed(
        product=product, rows=trial.rows, int8=trial.int8, launch=trial.launch, tile=trial.tile,
        microseconds=each, bytes_per_second=size / each * 1e6,
    )  # fmt: skip


def _launch_once(trial: Trial) -> None:
    _launcher(trial, [_matrix(trial.product, int8=trial.int8)])()
    torch.cuda.synchronize()


def _matrix(product: Product, *, int8: bool) -> Matrix:
    shape = (product.columns, product.inner)
    if int8:
        packed = torch.randint(-127, 128, shape, dtype=torch.int8, device="cuda")
        return Matrix(weight=packed, packed=packed, scale=torch.rand(product.columns, device="cuda") / 1e3)
    return Matrix(weight=torch.randn(shape, device="cuda", dtype=torch.bfloat16) / product.inner**0.5)


def _launcher(trial: Trial, matrices: list[Matrix]):  # type: ignore[no-untyped-def]  # a closure over static tensors
    product, rows = trial.product, trial.rows
    x = torch.randn(rows, product.inner, device="cuda", dtype=torch.bfloat16)
    squares = torch.rand(rows, 128, device="cuda") if product.norm else None
    outputs = product.columns // 2 if product.gated else product.columns
    old = torch.randn(rows, outputs, device="cuda") if product.residual else None
    out = torch.empty(rows, outputs, device="cuda", dtype=torch.float32 if product.residual else torch.bfloat16)
    stream = None
    if product.residual:
        gain = torch.rand(outputs, device="cuda", dtype=torch.bfloat16) + 0.5
        parts = torch.empty(rows, programs(outputs, trial.tile), device="cuda")
        stream = Stream(gain=gain, ready=torch.empty_like(out, dtype=torch.bfloat16), squares=parts)

    def launch() -> None:
        for matrix, following in zip(matrices, [*matrices[1:], matrices[0]], strict=True):
            linear(
                x, matrix, trial.tile, out,
                squares=squares, eps=1e-6, gated=product.gated, old=old, stream=stream, overlap=trial.launch.overlap,
                ahead=ahead_of(following, rows, limit=trial.launch.ahead_bytes),
            )  # fmt: skip

    return launch
