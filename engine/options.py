"""Engine settings from the command line and the environment: one table for `say`, `serve` and the documentation."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import UsageError
from engine.prompt_mode import TextMode
from engine.settings import REFERENCE_MODEL, EngineSettings, Precision


@dataclass(frozen=True, kw_only=True)
class Option:
    """One setting: flag and environment variable, the field it fills, how its text is read, what it means."""

    flag: str
    field: str
    parse: Callable[[str], Any]
    default: str
    help: str

    @property
    def name(self) -> str:
        return self.flag.removeprefix("--").replace("-", "_")

    @property
    def shown_default(self) -> str:
        return "the embedded model" if self.field == "model" else self.default or "from the directory"

    @property
    def variable(self) -> str:
        return "ASSAY_" + self.name.upper()


OPTIONS = (
    Option(flag="--model", field="model", parse=Path, default=str(REFERENCE_MODEL), help="model directory"),
    Option(flag="--model-name", field="model_name", parse=str, default="", help="model name on the wire"),
    Option(flag="--device", field="device", parse=str, default="auto", help="auto, cpu, cuda or cuda:N"),
    Option(flag="--precision", field="precision", parse=Precision, default="auto", help=", ".join(Precision)),
    Option(flag="--max-concurrent-requests", field="rows", parse=int, default="6", help="requests in the batch"),
    Option(
        flag="--max-positions", field="positions", parse=int, default="4096", help="prompt plus frames of a request"
    ),
    Option(flag="--max-frames", field="max_frames", parse=int, default="1500", help="longest utterance, 80 ms frames"),
    Option(flag="--text-mode", field="text_mode", parse=TextMode, default="full", help=", ".join(TextMode)),
    Option(
        flag="--threads",
        field="threads",
        parse=int,
        default="0",
        help="CPU threads; 0: one for a small model, else torch decides",
    ),
)


def add_engine_arguments(parser: argparse.ArgumentParser) -> None:
    """Add every engine setting; each may also come from its environment variable."""
    group = parser.add_argument_group("engine")
    for option in OPTIONS:
        group.add_argument(
            option.flag,
            dest=f"engine_{option.field}",
            metavar="VALUE",
            help=f"{option.help} [{option.variable}; default {option.shown_default}]",
        )
    group.add_argument(
        "--allow-symlinks", action="store_true", help="accept a model directory made of links; never a release tier"
    )


def as_mapping(settings: EngineSettings) -> dict[str, Any]:
    """The settings in force by the names of their flags, ready for JSON."""
    found = {option.name: getattr(settings, option.field) for option in OPTIONS}
    return {**found, "model": str(settings.model), "allow_symlinks": settings.allow_symlinks}


def as_table() -> str:
    """The documentation's table, in Markdown."""
    lines = ["| flag | environment variable | default | meaning |", "|---|---|---|---|"]
    lines += [f"| `{one.flag}` | `{one.variable}` | {one.shown_default} | {one.help} |" for one in OPTIONS]
    return "\n".join(lines) + "\n"


def engine_settings(
    arguments: argparse.Namespace, environment: Mapping[str, str] = os.environ, **overrides: Any
) -> EngineSettings:
    """Settings from flags, then environment variables, then defaults.

    Raises:
        UsageError: names the flag or variable whose value cannot be used.
    """
    values: dict[str, Any] = {"allow_symlinks": arguments.allow_symlinks}
    for option in OPTIONS:
        given = getattr(arguments, f"engine_{option.field}")
        source, text = option.flag, given
        if given is None:
            source, text = option.variable, environment.get(option.variable, option.default)
        try:
            values[option.field] = option.parse(text)
        except (ValueError, ArithmeticError) as error:
            raise UsageError(f"{source}={text!r} cannot be used: {option.help}") from error
    return EngineSettings(**{**values, **overrides})
