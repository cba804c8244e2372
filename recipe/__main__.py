"""`python -m recipe STAGE`: make the embedded model, one stage or all."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch

from engine.errors import EngineError
from recipe.errors import RecipeError
from recipe.render import default_processes
from recipe.settings import limited, preset
from recipe.stages import STAGES, run

ALL = "all"


def main(arguments: list[str] | None = None) -> int:
    """Exit code of one invocation."""
    options = _parser().parse_args(arguments)
    started = time.monotonic()

    def report(line: str) -> None:
        print(f"{time.monotonic() - started:7.1f} s  {line}", flush=True)

    names = tuple(stage.name for stage in STAGES) if ALL in options.stages else tuple(options.stages)
    try:
        device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
        settings = preset(options.preset, work=options.work, device=device, processes=options.processes)
        settings = limited(settings, codec_seconds=options.codec_seconds, talker_seconds=options.talker_seconds)
        run(names, settings, report)
    except (RecipeError, EngineError) as error:
        print(f"recipe: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _parser() -> argparse.ArgumentParser:
    stages = "\n".join(f"  {stage.name:<9} {stage.purpose}" for stage in STAGES)
    parser = argparse.ArgumentParser(
        prog="python -m recipe",
        description=f"Make the embedded model.\n\nStages, in order:\n{stages}\n  {ALL:<9} every stage",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stages", nargs="+", choices=[*(stage.name for stage in STAGES), ALL], metavar="STAGE")
    parser.add_argument(
        "--work", type=Path, default=Path("work/recipe"), help="working directory (default: %(default)s)"
    )
    parser.add_argument("--preset", choices=("full", "smoke"), default="full", help="how much (default: %(default)s)")
    parser.add_argument("--device", help="cuda or cpu (default: cuda where there is one)")
    parser.add_argument(
        "--processes", type=int, default=default_processes(), help="rendering processes (default: %(default)s)"
    )
    parser.add_argument("--codec-seconds", type=float, help="time limit of the codec's training")
    parser.add_argument("--talker-seconds", type=float, help="time limit of the talker's training")
    return parser


if __name__ == "__main__":
    sys.exit(main())
