"""`python -m engine bench`: what the engine takes of an accelerator; the last line on standard output is one JSON
document.

Measures the engine from inside, without HTTP: captured graphs alone, and the checks that speed must not break. Latency
and throughput as a listener sees them are measured from outside by whoever drives the server.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from engine.errors import DeviceError

HELP = "measure frame times and correctness on an accelerator"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", type=Path, help="model directory; default: published shapes, synthetic weights in memory"
    )
    parser.add_argument("--device", default="cuda", help="cuda or cuda:N")
    parser.add_argument("--rows", type=int, default=64, help="largest batch (default 64)")
    parser.add_argument("--positions", type=int, default=1024, help="cache positions a row (default 1024)")
    parser.add_argument("--int8", action="store_true", help="INT8 layers in the frame step")
    parser.add_argument("--kernels", action="store_true", help="every matrix product by itself too")
    parser.add_argument("--no-checks", action="store_true", help="times only")


def run(arguments: argparse.Namespace) -> int:
    """Print a line a stage, then the JSON document. Returns 0."""
    from engine.device import resolve_device  # torch takes seconds, which every other command would wait for

    device = resolve_device(arguments.device)
    if device.type != "cuda":
        raise DeviceError("bench measures an accelerator; on a CPU use `say`, which prints its own speed")
    from engine.bench.measure import measure  # and its kernels need what only an accelerator's installation has

    print(json.dumps(measure(arguments, device)))
    return 0
