"""Image references that mean one image for ever: a name and a SHA-256 digest. A tag can move, so a tag is refused.

`parse` reads `[host[:port]/]path[:tag]@sha256:<64 hex>`; a tag beside a digest is refused too, since a reader might
believe it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from qualification.container.faults import ContainerFault, FaultCode

_NAME = re.compile(r"(?:[A-Za-z0-9.-]+(?::[0-9]{1,5})?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class ImageReference:
    """A repository name (registry host included, if any) and the digest of a manifest or index."""

    name: str
    digest: str

    def __str__(self) -> str:
        return f"{self.name}@{self.digest}"

    @property
    def registry(self) -> str | None:
        """The `host[:port]` in front, or None where the name has none."""
        head, slash, _ = self.name.partition("/")
        return head if slash and (":" in head or "." in head or head == "localhost") else None

    @property
    def repository(self) -> str:
        """The name without its registry."""
        return self.name if self.registry is None else self.name.partition("/")[2]


def parse(text: str, *, by_tag: FaultCode = FaultCode.REFERENCE_BY_TAG) -> ImageReference:
    """Read a reference by digest.

    Raises:
        ContainerFault: `by_tag` for a reference without a digest or with a tag beside it; `reference_malformed`
        otherwise.
    """
    name, at, digest = text.partition("@")
    if not at or _has_tag(name):
        raise ContainerFault(
            by_tag, f"{text!r} is given by tag, which can move; give it as name@sha256:<64 hex digits>"
        )
    if not _NAME.fullmatch(name) or not _DIGEST.fullmatch(digest):
        raise ContainerFault(FaultCode.REFERENCE_MALFORMED, f"{text!r} is not name@sha256:<64 lower-case hex digits>")
    return ImageReference(name=name, digest=digest)


def _has_tag(name: str) -> bool:
    return ":" in name.rpartition("/")[2]
