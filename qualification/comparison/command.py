"""The command `compare`: verify both sides, compare them, write the document, answer a release gate.

0    done; with `--fail-if-worse` the bound of every figure lies inside the limit
3    the bundles are not comparable
8    the verifier refuses one of them
16   `--fail-if-worse`: the bound says that a figure is worse by more than the limit
17   `--fail-if-worse`: it cannot be told
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qualification import schema
from qualification.comparison.document import Asked, Checked, compare
from qualification.comparison.verdicts import Gate
from qualification.drawing import report_program
from qualification.errors import BundleError, RefusedBundle, Undecided, UsageError, WorseThanAllowed
from qualification.evidence_view import EvidenceView
from qualification.gates.table import GATES
from qualification.verify.trust import Trust
from qualification.verify.verifier import verify


@dataclass(frozen=True, kw_only=True)
class Result:
    """The document, and the error that the gate asks for, or None."""

    document: dict[str, Any]
    failure: WorseThanAllowed | Undecided | None


def compare_bundles(places: Sequence[Path], trusts: Sequence[Trust], asked: Asked) -> Result:
    """Verify and compare the bundles at `places`: A and B in turn, each a repetition.

    Args:
        trusts: a bundle is accepted under any of them, because two releases may have had two policies.

    Raises:
        UsageError: an odd number of bundles.
        BundleError: a place is no directory.
        RefusedBundle: the verifier refuses one.
        InputError: they are not comparable.
    """
    if len(places) < 2 or len(places) % 2:
        raise UsageError("compare takes bundles in pairs: A B, or A B A B where a side was run more than once")
    checked = [_verified(place, trusts) for place in places]
    document = compare(list(zip(checked[::2], checked[1::2], strict=True)), asked)
    schema.validate("comparison", document, "comparison")
    return Result(document=document, failure=_failure(document["gate"]))


def _verified(place: Path, trusts: Sequence[Trust]) -> Checked:
    if not place.is_dir():
        raise BundleError(f"{place} is no directory; give the directory that holds manifest.json")
    verifications = [verify(place, trust, GATES, report_program()) for trust in trusts]
    for verification in verifications:
        if not verification.refused:
            return EvidenceView(place), verification
    lines = "\n".join(verifications[0].lines())
    raise RefusedBundle(f"{place} is refused, so nothing is compared:\n{lines}")


def _failure(gate: dict[str, Any] | None) -> WorseThanAllowed | Undecided | None:
    if gate is None or gate["outcome"] == Gate.HOLDS:
        return None
    text = f"--fail-if-worse {gate['limit']:.1%}: {'; '.join(gate['reasons'])}"
    return WorseThanAllowed(text) if gate["outcome"] == Gate.WORSE else Undecided(text)
