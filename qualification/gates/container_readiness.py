"""Is the container ready in time, and not before its warm-up went through?

Seen from outside: live before ready, no speech before ready, ready within 20 s of each start (first, again, and the
measured one), and the engine's own counters, where it has some, showing work before any request of ours. The image's
health check must agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from qualification.evidence_view import EvidenceView
from qualification.gates.container_evidence import (
    READY_SECONDS,
    Check,
    container_document,
    faulted,
    judged,
    unperformed,
)
from qualification.policy import Policy
from qualification.results import GateResult


@dataclass(frozen=True, kw_only=True)
class ContainerReadinessGate:
    """`readiness`, `restart`, `measured`, `warm_up` and `docker_health` of `records/container.json`."""

    id: str = "container.readiness"

    def evaluate(self, evidence: EvidenceView, policy: Policy) -> GateResult:
        """Every start inside the limit, and no readiness before its time."""
        document = container_document(evidence)
        if (early := unperformed(policy, self.id, document)) is not None:
            return early
        assert document is not None  # `unperformed` answers for None
        if document["readiness"] is None:
            return faulted(policy, self.id, document, "readiness")
        checks = [
            *_starts(document),
            *_order(document["readiness"]),
            *_warm_up(document["warm_up"]),
            *_health(document["docker_health"]),
        ]
        passed = f"Ready after {document['readiness']['ready_s']:.2f} s, and not before its warm-up."
        return judged(policy, self.id, checks, passed)


def _starts(document: Mapping[str, Any]) -> Iterator[Check]:
    for name in ("readiness", "restart", "measured"):
        seen = document[name]
        if seen is not None:
            yield Check(
                name=f"{name}: ready after {seen['ready_s']:.2f} s, limit {READY_SECONDS:g}",
                holds=seen["ready_s"] <= READY_SECONDS,
            )
        else:
            yield Check(name=f"{name} was reached", holds=False)


def _order(seen: Mapping[str, Any]) -> Iterator[Check]:
    changes = seen["changes"]
    yield Check(name="ready was answered only in the end", holds=all(change["ready"] != 200 for change in changes[:-1]))
    early = seen["early_request"]
    if early is not None and early["ready_after"] != 200:
        yield Check(name="no speech before readiness", holds=early["status"] != 200)


def _warm_up(lines: list[str]) -> Iterator[Check]:
    counts = [float(line.rpartition(" ")[2]) for line in lines if "_total" in line]
    if counts:
        yield Check(name="the engine had worked before the first request", holds=any(count > 0 for count in counts))


def _health(seen: Mapping[str, Any] | None) -> Iterator[Check]:
    yield Check(name="the image's health check says healthy", holds=seen is not None and seen["status"] == "healthy")
