"""`python -m engine serve`: the HTTP server in front of one engine."""

from __future__ import annotations

import argparse
import sys

from engine.contract import SpeechEngine
from engine.options import add_engine_arguments, as_mapping, engine_settings
from engine.server import cli

SWITCH_SECONDS = 0.0005  # how long finished audio may wait for the engine's thread to let the event loop have its turn


def add_arguments(parser: argparse.ArgumentParser) -> None:
    cli.add_arguments(parser)
    add_engine_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Serve until told to stop; settings are checked before anything listens."""
    settings = engine_settings(arguments)
    sys.setswitchinterval(SWITCH_SECONDS)

    def make_engine() -> SpeechEngine:
        from engine.synthesizer import Synthesizer  # takes seconds; the server answers /health/live meanwhile

        return Synthesizer(settings)

    return cli.run(arguments, make_engine, as_mapping(settings))
