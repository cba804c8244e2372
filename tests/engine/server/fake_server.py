"""The server with the fake engine as a real process: `python -m tests.engine.server.fake_server`."""

from __future__ import annotations

import argparse
import sys

from engine.contract import SpeechEngine
from engine.errors import EngineError, ModelError
from engine.server import cli
from tests.engine.server.fake_engine import FakeEngine


def main() -> int:
    parser = argparse.ArgumentParser()
    cli.add_arguments(parser)
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--frame-seconds", type=float, default=0.0)
    parser.add_argument("--start-seconds", type=float, default=0.0)
    parser.add_argument("--fail-start", action="store_true")
    args = parser.parse_args()

    def make() -> SpeechEngine:
        return FakeEngine(
            slots=args.slots,
            frame_seconds=args.frame_seconds,
            start_seconds=args.start_seconds,
            start_error=ModelError("the model directory is empty; give another") if args.fail_start else None,
        )

    try:
        return cli.run(args, make)
    except EngineError as error:
        print(error, file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
