"""What an image is made of: Python distributions, Debian packages, model files, and libraries that lie inside wheels.

A part without a licence of its own is still a part; `skipped` says why it is not judged by itself. Nothing found is
dropped.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Part:
    """One component.

    Attributes:
        kind: python, debian, model, weights, vendored or own.
        purl: package URL, or None where there is none for its kind.
        licence: SPDX expression, or None where no text names one.
        evidence: the words that name the licence, or what was found instead.
        sha256: of the archive it came as, or of the file itself.
        requires: names of parts of the same kind that it needs.
        skipped: why its licence is not judged by itself.
    """

    kind: str
    name: str
    version: str | None
    purl: str | None
    licence: str | None
    evidence: str
    sha256: str | None = None
    requires: tuple[str, ...] = ()
    skipped: str | None = None
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def ref(self) -> str:
        """A name that is unique in the document and the same in every run."""
        return self.purl or f"{self.kind}:{self.name}"
