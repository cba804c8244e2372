"""`python -m engine make-shape`: write the synthetic checkpoint that speed is measured on."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

HELP = "write a synthetic checkpoint of the published shapes"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, help="new directory for about 4.3 GB")
    parser.add_argument("--seed", type=int, default=0, help="seed of the weights (default 0)")


def run(arguments: argparse.Namespace) -> int:
    """Write the checkpoint and say how long it took. Returns 0."""
    from engine.shape.weights import write_shape_checkpoint  # needs torch, which every other command would wait for

    started = time.perf_counter()
    directory = write_shape_checkpoint(arguments.directory, seed=arguments.seed)
    print(
        f"{directory}: published shapes, synthetic weights, seed {arguments.seed}, {time.perf_counter() - started:.0f} s"
    )
    return 0
