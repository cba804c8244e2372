"""What each step of the verifier says of the good bundle and of every tampered one, kept word for word:

    python -m tests.qualification.tamper.findings        # writes it again, after a change that is meant

A tamper is caught by one code; here stand all findings, so that a check that moves, widens or falls silent shows.
Findings of the recomputation are kept without their details, which repeat what the gates say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from qualification import strictjson
from qualification.evidence_view import EvidenceView
from qualification.gates.table import GATES
from qualification.tamper import bench, good
from qualification.tamper.corpus import CORPUS
from qualification.verify.findings import Finding
from qualification.verify.trust import Trust
from qualification.verify.verifier import ask, steps

KEPT: Final = Path(__file__).with_name("findings.json")
UNTOUCHED: Final = "the good bundle, untouched"
STEPS: Final = (
    "structure",
    "authenticity",
    "documents",
    "binding",
    "recomputation",
    "requests",
    "plan",
    "timeline",
    "audio",
    "sessions",
    "sense",
    "layers",
    "audio reviews",
)


@dataclass(frozen=True, kw_only=True)
class Bundles:
    """The good bundle and the tampered ones, by name; `place` keeps their files."""

    place: TemporaryDirectory[str]
    trust: Trust
    views: Mapping[str, EvidenceView]


@cache
def bundles() -> Bundles:
    """Made once a process: they are only read."""
    place = TemporaryDirectory(prefix="tampered-")
    original = good.build(Path(place.name, "good"))
    roots = {UNTOUCHED: original.root}
    for number, tamper in enumerate(CORPUS):
        copy = bench.copy(original, Path(place.name, f"tampered-{number:03}"))
        tamper.change(copy)
        copy.seal(tamper.reseal)
        roots[tamper.name] = copy.root
    views = {name: EvidenceView(root) for name, root in roots.items()}
    return Bundles(place=place, trust=original.trust, views=views)


def said(step: str) -> dict[str, list[str]]:
    """Bundle -> what one step says of it, in the step's order; bundles of which it says nothing are left out."""
    made = bundles()
    answers: dict[str, list[str]] = {}
    for name, view in made.views.items():
        question = dict(steps(view, made.trust, GATES, None))[step]
        found = [_line(finding) for finding in ask(step, question)]
        if found:
            answers[name] = found
    return answers


def _line(finding: Finding) -> str:
    kind = "" if finding.refuses else "note "
    detail = "" if finding.family == "recomputation" else f": {finding.detail}"
    return f"{kind}{finding.code} {finding.file}{detail}"


def main() -> None:
    KEPT.write_bytes(strictjson.dumps({step: said(step) for step in STEPS}))


if __name__ == "__main__":
    main()
