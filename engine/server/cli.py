"""The `serve` command: flags, `--print-config`, and the run itself. Wired into `python -m engine` by its owner."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from typing import Any

from engine.contract import SpeechEngine
from engine.server import logs
from engine.server.process import serve
from engine.server.settings import add_flags, as_json, settings_from


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the server's flags to the parser of `serve`."""
    add_flags(parser)
    parser.add_argument("--print-config", action="store_true", help="print the settings in force and stop")


def run(
    args: argparse.Namespace, make_engine: Callable[[], SpeechEngine], engine: Mapping[str, Any] | None = None
) -> int:
    """Serve the engine that `make_engine` makes; returns the exit status. `engine`: its settings, only to be shown.

    `make_engine` is called in a thread while `/health/live` already answers, so loading belongs in it or in `start`.

    Raises:
        UsageError: a setting breaks its rule, or the address cannot be listened on.
    """
    settings = settings_from(args, os.environ)
    if args.print_config:
        print(as_json(settings, engine or {}))
        return 0
    settings.auth_token()  # an unreadable token file is refused before anything listens
    logs.configure(settings.log_level)
    return serve(settings, make_engine)
