"""`python -m engine`: speak one text, or serve. The only place that turns errors into exit codes.

A command's module is imported once it is chosen: help and usage errors wait for no library of another command.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from engine.errors import EngineError

COMMANDS = {
    "say": ("engine.say", "speak one text to a WAV file"),
    "serve": ("engine.serve", "serve the HTTP contract"),
    "fleet": ("engine.fleet.cli", "serve the HTTP contract from several replicas on a Ray cluster"),
    "make-shape": ("engine.shape.cli", "write a synthetic checkpoint of the published shapes"),
    "bench": ("engine.bench.cli", "measure frame times and correctness on an accelerator"),
}


def main(argv: list[str] | None = None) -> int:
    """Run one command. Exit codes: 0 done, 1 engine, 2 usage, 3 model, 4 request refused, 5 device, 130 interrupted."""
    given = sys.argv[1:] if argv is None else argv
    arguments = _parser(next((word for word in given if not word.startswith("-")), None)).parse_args(given)
    try:
        status: int = arguments.run(arguments)
    except EngineError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return status


def _parser(chosen: str | None) -> argparse.ArgumentParser:
    """All commands by name, the chosen one with its arguments."""
    parser = argparse.ArgumentParser(prog="python -m engine", description="Compact Qwen3-TTS VoiceDesign engine")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (module, text) in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        if name == chosen:
            found = import_module(module)
            found.add_arguments(command)
            command.set_defaults(run=found.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
