"""`python -m engine`: speak one text, or serve. The only place that turns errors into exit codes."""

from __future__ import annotations

import argparse
import sys

from engine import say
from engine.errors import EngineError


def main(argv: list[str] | None = None) -> int:
    """Run one command. Exit codes: 0 done, 1 engine, 2 usage, 3 model, 4 request refused, 5 device, 130 interrupted."""
    parser = argparse.ArgumentParser(prog="python -m engine", description="Compact Qwen3-TTS VoiceDesign engine")
    commands = parser.add_subparsers(dest="command", required=True)
    say.add_arguments(commands.add_parser("say", help="speak one text to a WAV file"))
    arguments = parser.parse_args(argv)
    try:
        return say.run(arguments)
    except EngineError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
