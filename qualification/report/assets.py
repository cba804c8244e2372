"""Templates, styles and scripts of the pages, and how a page lets its own script run and no other."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from qualification.report import words

_TEMPLATES = Path(__file__).resolve().parent / "templates"
_INCLUDE = re.compile(r"^ */\* include ([a-z0-9]+\.js) \*/\n", re.MULTILINE)


@cache
def environment() -> Environment:
    """The template engine: everything is escaped, an unknown name is an error."""
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["figure"] = words.figure
    made.filters["size"] = words.size
    made.filters["seconds"] = words.seconds
    made.filters["grouped"] = words.grouped
    return made


def text(name: str) -> str:
    """An asset as it lies there."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def script(name: str) -> str:
    """A script, with what it includes put in."""
    return _INCLUDE.sub(lambda match: text(match[1]), text(name))


def policy_hash(code: str) -> str:
    """The hash of a script by which a content security policy lets it run."""
    return base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
