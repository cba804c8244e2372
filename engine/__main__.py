"""`python -m engine`: speak one text, or serve. The only place that turns errors into exit codes."""

from __future__ import annotations

import argparse
import sys

from engine import say, serve
from engine.bench import cli as bench
from engine.errors import EngineError
from engine.shape import cli as make_shape


def main(argv: list[str] | None = None) -> int:
    """Run one command. Exit codes: 0 done, 1 engine, 2 usage, 3 model, 4 request refused, 5 device, 130 interrupted."""
    parser = argparse.ArgumentParser(prog="python -m engine", description="Compact Qwen3-TTS VoiceDesign engine")
    commands = parser.add_subparsers(required=True)
    for name, command in (("say", say), ("serve", serve), ("make-shape", make_shape), ("bench", bench)):
        chosen = commands.add_parser(name, help=command.HELP, description=command.HELP)
        command.add_arguments(chosen)
        chosen.set_defaults(run=command.run)
    arguments = parser.parse_args(argv)
    try:
        status: int = arguments.run(arguments)
    except EngineError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return status


if __name__ == "__main__":
    sys.exit(main())
