"""Settings of the server: one table for flags, environment variables, checks, `--print-config` and the documentation.

Precedence: flag, environment variable, default. Everything is checked before a socket is opened.
Not covered: what the engine itself needs (model directory, device, precision); its owner adds those flags.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from engine.contract import MAX_TEXT_BYTES, MAX_VOICE_DESCRIPTION_BYTES
from engine.errors import UsageError

PREFIX = "ASSAY_"
TOKEN_VARIABLE = f"{PREFIX}AUTH_TOKEN"
LONGEST_GRACE_SECONDS = 20.0
ORIGIN = r"\*|[a-z][a-z0-9+.-]*://[^/\s,]+"  # as browsers write it: no path, no slash at the end
LOG_LEVELS = ("debug", "info", "warning", "error")


def _row(default: Any, help_text: str, rule: str = "", check: Callable[[Any], bool] | None = None) -> Any:
    return field(default=default, metadata={"help": help_text, "rule": rule, "check": check or (lambda _: True)})


def _within(low: float, high: float) -> tuple[str, Callable[[Any], bool]]:
    return f"{low:g} .. {high:g}", lambda value: low <= value <= high


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """How the server listens and what it bounds. Times in seconds, sizes in bytes.

    Raises:
        UsageError: a value breaks its rule; the message names the setting and the rule.
    """

    host: str = _row("127.0.0.1", "address to listen on", "not empty", bool)
    port: int = _row(8000, "TCP port; 0 lets the system choose, the choice is printed", *_within(0, 65_535))
    max_text_bytes: int = _row(MAX_TEXT_BYTES, "largest text, in UTF-8 bytes", *_within(1, MAX_TEXT_BYTES))
    max_voice_description_bytes: int = _row(
        MAX_VOICE_DESCRIPTION_BYTES,
        "largest voice description, in UTF-8 bytes",
        *_within(1, MAX_VOICE_DESCRIPTION_BYTES),
    )
    max_duration_seconds: float = _row(
        0.0,
        "longest speech a request may ask for; 0 leaves it to the engine's own limit",
        "0, or 0.08 .. 3600",
        lambda value: value == 0 or 0.08 <= value <= 3600,
    )
    slow_reader_seconds: float = _row(5.0, "a client that takes nothing for so long is cancelled", *_within(0.05, 60))
    request_read_seconds: float = _row(
        15.0, "a request whose headers or body take longer to arrive is dropped", *_within(0.1, 300)
    )
    keep_alive_seconds: float = _row(30.0, "an idle connection is closed after so long", *_within(0.1, 600))
    stall_seconds: float = _row(
        60.0, "a request for which the engine makes nothing for so long is cancelled", *_within(0.1, 3600)
    )
    retirement_seconds: float = _row(
        10.0, "a cancelled request that the engine does not end in time becomes a tombstone", *_within(0.1, 600)
    )
    grace_seconds: float = _row(
        15.0, "how long active streams may go on after SIGTERM or SIGINT", *_within(0, LONGEST_GRACE_SECONDS)
    )
    watchdog_exit_seconds: float = _row(
        0.0,
        "exit with status 75 after the engine has been unusable for so long; 0 stays up, unready",
        *_within(0, 3600),
    )
    max_connections: int = _row(512, "open connections; further ones are closed at once", *_within(1, 65_536))
    max_header_bytes: int = _row(32_768, "largest request line with headers", *_within(1_024, 1_048_576))
    requests_per_minute: int = _row(
        0, "speech requests a client address may make each minute; 0 sets no limit", *_within(0, 1_000_000)
    )
    auth_token_file: str = _row(
        "",
        "file whose first line is the bearer token that clients must send (health checks and the page's files are exempt)",
    )
    cors_origins: str = _row(
        "",
        "comma-separated origins that browsers may call from; empty switches CORS off",
        "`*`, or scheme://host[:port] each",
        lambda value: all(re.fullmatch(ORIGIN, name) for name in names(value)),
    )
    model_aliases: str = _row("", "comma-separated further names that /v1/audio/speech accepts as `model`")
    hardened: bool = _row(False, "serve neither the page at / nor /openapi.json")
    log_level: str = _row("info", "least severe log line to write", ", ".join(LOG_LEVELS), LOG_LEVELS.__contains__)

    def __post_init__(self) -> None:
        for row in fields(self):
            value = getattr(self, row.name)
            if not row.metadata["check"](value):
                raise UsageError(f"{row.name} is {value!r}; it must be {row.metadata['rule']}")

    @property
    def body_limit(self) -> int:
        """Largest request body in bytes, by the contract's formula."""
        return self.max_text_bytes + self.max_voice_description_bytes + 16_384

    def auth_token(self) -> str | None:
        """The bearer token, from the file or from ASSAY_AUTH_TOKEN; None when neither is set.

        Raises:
            UsageError: the file cannot be read, or what is there is no token; an empty one is never taken for none.
        """
        if not self.auth_token_file:
            given = os.environ.get(TOKEN_VARIABLE)
            return None if given is None else _token(given, TOKEN_VARIABLE)
        try:
            lines = Path(self.auth_token_file).read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"auth_token_file {self.auth_token_file}: {error}; give a readable text file") from error
        return _token(lines[0] if lines else "", f"the first line of auth_token_file {self.auth_token_file}")


def flag(row: Field[Any]) -> str:
    """`--max-text-bytes` for the field `max_text_bytes`."""
    return "--" + row.name.replace("_", "-")


def variable(row: Field[Any]) -> str:
    """`ASSAY_MAX_TEXT_BYTES` for the field `max_text_bytes`."""
    return PREFIX + row.name.upper()


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add one flag a setting. Values stay text until `settings_from` reads them, so that one parser serves both."""
    group = parser.add_argument_group("server", "each flag also reads an environment variable, see --print-config")
    for row in fields(ServerSettings):
        kind = _kind(row)
        if kind is bool:
            group.add_argument(
                flag(row), action=argparse.BooleanOptionalAction, default=None, help=row.metadata["help"]
            )
        else:
            help_text = f"{row.metadata['help']} (default {row.default!r})"
            group.add_argument(flag(row), metavar=kind.__name__.upper(), default=None, help=help_text)


def settings_from(args: argparse.Namespace, environ: Mapping[str, str]) -> ServerSettings:
    """Read every setting from its flag, else its variable, else its default.

    Raises:
        UsageError: a value cannot be read or breaks its rule.
    """
    values: dict[str, Any] = {}
    for row in fields(ServerSettings):
        given = getattr(args, row.name, None)
        source = flag(row)
        if given is None and variable(row) in environ:
            given, source = environ[variable(row)], variable(row)
        if given is not None:
            values[row.name] = _read(given, _kind(row), source)
    return ServerSettings(**values)


def as_json(settings: ServerSettings, engine: Mapping[str, Any]) -> str:
    """The settings in force, the engine's own beside them, as `--print-config` shows them. The token is never shown."""
    shown: dict[str, Any] = {row.name: getattr(settings, row.name) for row in fields(settings)}
    shown["engine"] = dict(engine)
    shown["auth_token"] = "set" if settings.auth_token() else "unset"
    return json.dumps(shown, indent=2, sort_keys=True)


def as_table() -> str:
    """The documentation's table, in Markdown."""
    lines = ["| flag | environment variable | default | rule | meaning |", "|---|---|---|---|---|"]
    for row in fields(ServerSettings):
        default = "" if row.default == "" else f"`{json.dumps(row.default)}`"
        cells = (f"`{flag(row)}`", f"`{variable(row)}`", default, row.metadata["rule"], row.metadata["help"])
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def names(listed: str) -> tuple[str, ...]:
    """Split a comma-separated setting."""
    return tuple(name.strip() for name in listed.split(",") if name.strip())


def _token(given: str, source: str) -> str:
    token = given.strip()
    if not token:
        raise UsageError(f"{source} is empty; give a token there, or remove it to serve without one")
    if not re.fullmatch(r"[!-~]+", token):
        raise UsageError(f"{source} is no bearer token; use visible ASCII characters without spaces")
    return token


def _kind(row: Field[Any]) -> type[Any]:
    if row.default is MISSING:
        raise AssertionError(f"setting {row.name} has no default")
    return type(row.default)


def _read(given: Any, kind: type[Any], source: str) -> Any:
    if isinstance(given, kind):
        return given
    try:
        if kind is bool:
            return {"1": True, "true": True, "0": False, "false": False}[str(given).lower()]
        return kind(given)
    except (KeyError, ValueError) as error:
        raise UsageError(f"{source} is {given!r}; give {'true or false' if kind is bool else kind.__name__}") from error
