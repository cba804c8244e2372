"""Structured log lines, one JSON object each, on stderr. Never a prompt, a description, audio or an error's own text.

An error's text may quote what a client sent, so faults are logged as type and place alone.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from typing import Any


class JsonLines(logging.Formatter):
    """`{"ts", "level", "event", …}`; the fields come from `extra={"fields": {…}}`."""

    def format(self, record: logging.LogRecord) -> str:
        ours = record.name.split(".")[0] == "engine"
        line: dict[str, Any] = {
            "ts": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage() if ours else record.name,
        }
        if not ours:
            line["message"] = str(record.msg)  # the template without its arguments, which may hold content
        if record.exc_info and record.exc_info[1] is not None:
            line.update(fault(record.exc_info[1]))
        line.update(getattr(record, "fields", {}))
        return json.dumps(line)


def configure(level: str) -> None:
    """Send every logger's lines to stderr as JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # the door has written down what matters, without content
    logging.getLogger("engine").setLevel(level.upper())


def fault(error: BaseException) -> dict[str, Any]:
    """Type and innermost places of an error, without its text."""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    places = [f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno} {frame.name}" for frame in frames]
    return {"error": type(error).__name__, "at": places}
