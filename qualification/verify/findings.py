"""What a verifier can find: a stable code, the family that gives the exit status, the file and a sentence.

    family          exit   question
    structure        10    are exactly the sealed files there, unaltered?
    authenticity     11    did a key that the caller trusts sign all of it?
    document         12    is each document strict, canonical and of its schema?
    binding          13    do all documents belong to this run, and policy, pins and tier to what the caller trusts?
    recomputation    14    do gates, numbers and verdict follow from the raw files?
    plausibility     15    can the raw files be a record of what they say happened?

A note does not refuse the bundle; it says what was not checked. Codes are never reused for another meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

FAMILIES: Final[Mapping[str, int]] = {
    "structure": 10,
    "authenticity": 11,
    "document": 12,
    "binding": 13,
    "recomputation": 14,
    "plausibility": 15,
}
CODES: Final[Mapping[str, str]] = {
    "bundle.unreadable": "structure",
    "file.irregular": "structure",
    "manifest.missing": "structure",
    "manifest.malformed": "structure",
    "manifest.order": "structure",
    "manifest.role": "structure",
    "file.missing": "structure",
    "file.extra": "structure",
    "file.size": "structure",
    "file.digest": "structure",
    "abandoned.unnamed": "structure",
    "bundle.incomplete": "structure",
    "layer.unknown": "structure",
    "layer.incomplete": "structure",
    "layer.name": "structure",
    "signature.missing": "authenticity",
    "signature.malformed": "authenticity",
    "signature.untrusted": "authenticity",
    "signature.unchecked": "authenticity",
    "signature.none": "authenticity",
    "statement.differs": "authenticity",
    "layer.signature": "authenticity",
    "layer.untrusted": "authenticity",
    "layer.unchecked": "authenticity",
    "layer.unsigned": "authenticity",
    "layer.statement": "authenticity",
    "document.malformed": "document",
    "document.not-canonical": "document",
    "layer.malformed": "document",
    "binding.run": "binding",
    "binding.commit": "binding",
    "binding.image": "binding",
    "binding.policy": "binding",
    "policy.untrusted": "binding",
    "pins.untrusted": "binding",
    "tier.not-derived": "binding",
    "licences.incomplete": "binding",
    "session.subject": "binding",
    "layer.moved": "binding",
    "layer.clip": "binding",
    "layer.other-bundle": "binding",
    "layer.coverage": "binding",
    "layer.duplicate": "binding",
    "layer.other-policy": "binding",
    "gates.selection": "recomputation",
    "gates.missing": "recomputation",
    "gates.unknown": "recomputation",
    "gates.order": "recomputation",
    "gates.differ": "recomputation",
    "summary.number-missing": "recomputation",
    "summary.number-unknown": "recomputation",
    "summary.number-differs": "recomputation",
    "summary.derivation-differs": "recomputation",
    "summary.verdict-differs": "recomputation",
    "summary.differs": "recomputation",
    "report.differs": "recomputation",
    "report.unchecked": "recomputation",
    "layer.order": "recomputation",
    "layer.figure": "recomputation",
    "layer.audio-review": "recomputation",
    "verifier.step-failed": "recomputation",
    "request.duplicate-id": "plausibility",
    "request.time-order": "plausibility",
    "request.outcome": "plausibility",
    "request.seed-echo": "plausibility",
    "request.samples": "plausibility",
    "request.ceiling": "plausibility",
    "request.server-account": "plausibility",
    "packet.time-order": "plausibility",
    "packet.bytes": "plausibility",
    "packet.frames": "plausibility",
    "packet.position": "plausibility",
    "packet.final": "plausibility",
    "plan.profile": "plausibility",
    "plan.count": "plausibility",
    "plan.index": "plausibility",
    "plan.entry": "plausibility",
    "load.concurrency": "plausibility",
    "load.wave": "plausibility",
    "session.number": "plausibility",
    "session.reason": "plausibility",
    "session.order": "plausibility",
    "session.phase": "plausibility",
    "abandoned.count": "plausibility",
    "abandoned.mixed": "plausibility",
    "phase.missing": "plausibility",
    "phase.cover": "plausibility",
    "phase.too-short": "plausibility",
    "phase.requests": "plausibility",
    "phase.clock": "plausibility",
    "audio.placeholder-hash": "plausibility",
    "audio.repeated": "plausibility",
    "audio.missing": "plausibility",
    "audio.orphan": "plausibility",
    "audio.malformed": "plausibility",
    "audio.differs": "plausibility",
    "telemetry.missing": "plausibility",
    "telemetry.order": "plausibility",
    "telemetry.cover": "plausibility",
    "telemetry.jitter": "plausibility",
    "telemetry.memory": "plausibility",
    "telemetry.cpu": "plausibility",
    "telemetry.count": "plausibility",
    "telemetry.counter": "plausibility",
    "telemetry.power": "plausibility",
    "summary.order": "plausibility",
    "summary.power": "plausibility",
    "wording.placeholder": "plausibility",
    "layer.times": "plausibility",
    "comparison.file": "structure",
    "schedule.unlike": "binding",
    "schedule.differs": "recomputation",
    "comparison.differs": "recomputation",
    "schedule.plan": "plausibility",
    "schedule.missing": "plausibility",
    "schedule.unowned": "plausibility",
    "schedule.session": "plausibility",
    "schedule.order": "plausibility",
}


@dataclass(frozen=True, kw_only=True, order=True)
class Finding:
    """One thing found. `refuses` False: a note. Raises `KeyError` for a code that is not in the table."""

    code: str
    file: str
    detail: str
    refuses: bool = True

    def __post_init__(self) -> None:
        CODES[self.code]

    @property
    def family(self) -> str:
        return CODES[self.code]
