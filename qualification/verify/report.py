"""What the verifier hands back: findings, what the bundle claims, one answer and one exit status.

    0        sound, and qualified
    7        sound, and not qualified; or a required gate of the subset that was asked for did not pass
    9        sound, and incomplete: a subset of the gates was asked for, and no required one of it fell short
    10..15   refused; the first family that refuses gives the status (see `findings`)

It holds no time, no host and no absolute path, so that two machines write the same bytes for one bundle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from qualification import schema
from qualification.errors import Incomplete, NotQualified
from qualification.listening.ratings import Reviews
from qualification.verify.findings import FAMILIES, Finding


@dataclass(frozen=True, kw_only=True)
class Sealed:
    """What the bundle says of itself."""

    run_id: str
    tier: str
    verdict: str
    sentence: str
    manifest_sha256: str
    unmet: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Verification:
    """The result. `sealed` is None where the bundle is too broken to say anything. `reviews` is what listeners said after
    sealing; it changes neither answer nor exit status."""

    findings: tuple[Finding, ...]
    sealed: Sealed | None
    reviews: Reviews = Reviews()  # noqa: RUF009  # frozen, and of immutable parts

    @property
    def refused(self) -> bool:
        """Whether anything found refuses the bundle, or it could not even be read."""
        return self.sealed is None or any(finding.refuses for finding in self.findings)

    @property
    def answer(self) -> str:
        """`refused`, else the verdict of the bundle."""
        if self.refused or self.sealed is None:
            return "refused"
        return self.sealed.verdict

    @property
    def exit_code(self) -> int:
        """The process exit status, as in the table above."""
        families = [FAMILIES[finding.family] for finding in self.findings if finding.refuses]
        if families or self.sealed is None:
            return min(families, default=FAMILIES["structure"])
        if self.sealed.verdict == "qualified":
            return 0
        fell_short = self.sealed.verdict != "incomplete" or self.sealed.unmet
        return NotQualified.exit_code if fell_short else Incomplete.exit_code

    def to_json(self) -> dict[str, Any]:
        """The document `verification`, of the schema of that name."""
        return {
            "schema": schema.urn("verification"),
            "answer": self.answer,
            "exit_code": self.exit_code,
            "sealed": {**vars(self.sealed), "unmet": list(self.sealed.unmet)} if self.sealed else None,
            "reviews": self.reviews.to_json(),
            "findings": [{**vars(finding), "family": finding.family} for finding in self._by_weight()],
        }

    def lines(self) -> Iterator[str]:
        """The result for people: numbered findings, heaviest first, reviews if any, then one closing line."""
        for number, finding in enumerate(self._by_weight(), start=1):
            kind = "refused" if finding.refuses else "note"
            yield f"{number:3}. {kind:7}  {finding.code:28}  {finding.file}: {finding.detail}"
        if self.reviews.reviewers or self.reviews.uncounted:
            yield self.reviews.sentence
        if self.refused or self.sealed is None:
            yield f"REFUSED: {sum(f.refuses for f in self.findings)} findings refuse this bundle."
        else:
            yield self.sealed.sentence

    def _by_weight(self) -> list[Finding]:
        return sorted(self.findings, key=lambda f: (not f.refuses, FAMILIES[f.family], f.code, f.file, f.detail))
