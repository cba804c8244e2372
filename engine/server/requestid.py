"""Request ids: the client's `x-request-id` where it is a UUID, else a fresh UUIDv7 (RFC 9562: sortable by time)."""

from __future__ import annotations

import re
import secrets
import time
from uuid import UUID

from engine.server.problems import Problem

CANONICAL = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")


def uuid7() -> UUID:
    """48 bits of Unix milliseconds, then version, variant and 74 random bits."""
    milliseconds = time.time_ns() // 1_000_000
    value = milliseconds << 80 | 0x7 << 76 | secrets.randbits(12) << 64 | 0b10 << 62 | secrets.randbits(62)
    return UUID(int=value)


def parse(text: str) -> UUID | None:
    """The UUID in its canonical 36-character form, else None."""
    return UUID(text) if CANONICAL.fullmatch(text) else None


def from_headers(values: list[str]) -> UUID:
    """The id for a request whose `x-request-id` headers are `values`.

    Raises:
        Problem: `invalid_request_id` where a header is given but is no single UUID.
    """
    if not values:
        return uuid7()
    found = parse(values[0].strip()) if len(values) == 1 else None
    if found is None:
        raise Problem(
            "invalid_request_id", "x-request-id must be one UUID of 36 characters; correct it or leave it out"
        )
    return found
