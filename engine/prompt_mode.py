"""Where the text of a prompt stands; apart from `prompt` so that settings need no torch."""

from __future__ import annotations

from enum import StrEnum


class TextMode(StrEnum):
    """FULL: the whole text precedes the speech (the published default). STREAMING: one text id a frame."""

    FULL = "full"
    STREAMING = "streaming"
