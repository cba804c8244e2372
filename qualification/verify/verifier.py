"""The offline verifier: six questions, asked in order, answered with findings.

1. structure       are exactly the sealed files there, unaltered?
2. authenticity    did a key that the caller trusts sign all of it?
3. documents       is each document strict, canonical and of its schema?
4. binding         does everything belong to this run, and policy, pins and tier to what the caller trusts?
5. recomputation   do gates, numbers and verdict follow from the raw files?
6. plausibility    can the raw files be a record of what they say happened?

Then it looks at what was added after sealing, layers of listening and audio reviews, whose findings belong to the same families.

Needs the standard library, jsonschema, cryptography and numpy; reads the bundle and nothing else; writes nothing. All
six are asked even after a refusal, so that one fault does not hide another; a question without an answer refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from qualification import paths
from qualification.errors import QualificationError
from qualification.evaluation import Gate
from qualification.evidence_view import EvidenceView
from qualification.listening.ratings import Reviews
from qualification.verify import (
    audio,
    audio_layers,
    authenticity,
    binding,
    documents,
    layers,
    plan,
    recompute,
    requests,
    sense,
    sessions,
    structure,
    timeline,
)
from qualification.verify.findings import Finding
from qualification.verify.report import Sealed, Verification
from qualification.verify.trust import Trust

Step = Callable[[], Iterable[Finding]]


def verify(root: Path, trust: Trust, gates: Mapping[str, Gate], report: recompute.Report | None = None) -> Verification:
    """Verify the bundle at `root`. Never raises for what lies in it.

    Args:
        trust: keys, policy and pins that the caller brings.
        gates: the programs of the gates, evaluated again.
        report: draws `report.html` again, or None to leave that out with a note.
    """
    evidence = EvidenceView(root)
    findings = [finding for name, step in steps(evidence, trust, gates, report) for finding in ask(name, step)]
    reviews = _reviews(evidence, trust, findings)
    return Verification(findings=tuple(sorted(set(findings))), sealed=_sealed(evidence), reviews=reviews)


def steps(
    evidence: EvidenceView, trust: Trust, gates: Mapping[str, Gate], report: recompute.Report | None
) -> tuple[tuple[str, Step], ...]:
    """The questions in their order, by name; each is asked with `ask`."""
    return (
        ("structure", lambda: structure.check(evidence)),  # 1
        ("authenticity", lambda: authenticity.check(evidence, trust)),  # 2
        ("documents", lambda: documents.check(evidence)),  # 3
        ("binding", lambda: binding.check(evidence, trust)),  # 4
        ("recomputation", lambda: recompute.check(evidence, gates, report)),  # 5
        ("requests", lambda: requests.check(evidence)),  # 6
        ("plan", lambda: plan.check(evidence)),
        ("timeline", lambda: timeline.check(evidence)),
        ("audio", lambda: audio.check(evidence)),
        ("sessions", lambda: sessions.check(evidence)),
        ("sense", lambda: sense.check(evidence)),
        ("layers", lambda: layers.check(evidence, trust)),
        ("audio reviews", lambda: audio_layers.check(evidence, trust)),
    )


def ask(name: str, step: Step) -> list[Finding]:
    """The findings of one step; what it had found before it failed is kept."""
    found: list[Finding] = []
    try:
        found.extend(step())
    except QualificationError as error:
        found.append(Finding(code="verifier.step-failed", file=".", detail=f"{name} cannot be answered: {error}"))
    except Exception as error:  # noqa: BLE001  # a hostile bundle must end in a refusal, never in a traceback
        detail = f"{name} cannot be answered: {type(error).__name__}"
        found.append(Finding(code="verifier.step-failed", file=".", detail=detail))
    return found


def _sealed(evidence: EvidenceView) -> Sealed | None:
    """What the bundle says of itself, read without belief; None where it cannot be read."""
    try:
        summary = evidence.document(paths.SUMMARY)
        manifest_sha256 = evidence.sha256(paths.MANIFEST)
    except (QualificationError, OSError):
        return None
    return Sealed(
        run_id=summary["run_id"],
        tier=summary["tier"],
        verdict=summary["verdict"]["outcome"],
        sentence=summary["verdict"]["sentence"],
        manifest_sha256=manifest_sha256,
        unmet=tuple(summary["verdict"]["unmet"]),
    )


def _reviews(evidence: EvidenceView, trust: Trust, findings: Iterable[Finding]) -> Reviews:
    """What listeners said; nothing where the bundle cannot be read, which a finding says already."""
    try:
        return layers.summary(evidence, trust, findings)
    except (QualificationError, OSError):
        return Reviews()
