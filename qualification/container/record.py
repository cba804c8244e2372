"""What a container run leaves in the bundle: `container.json`, filled while the run goes on, complete whatever happens.

The record holds observations only. A part that was not reached stays None; a fault is a finding. Limits live in the
policy, verdicts in the gates.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from qualification import schema
from qualification.container.faults import ContainerFault, FaultCode, Finding

FILE = "container.json"


@dataclass(kw_only=True)
class ContainerRecord:
    """Mutable until the run ends; `document` writes it down."""

    engine: dict[str, Any] | None = None
    image: dict[str, Any] | None = None
    digest_proof: dict[str, Any] | None = None
    build: dict[str, Any] | None = None
    outside: dict[str, Any] | None = None
    inside: dict[str, Any] | None = None
    readiness: dict[str, Any] | None = None
    warm_up: list[str] = field(default_factory=list)
    health: dict[str, Any] | None = None
    docker_health: dict[str, Any] | None = None
    shutdown: dict[str, Any] | None = None
    restart: dict[str, Any] | None = None
    measured: dict[str, Any] | None = None
    cleanup: dict[str, Any] | None = None
    findings: list[Finding] = field(default_factory=list)

    def note(self, fault: ContainerFault) -> None:
        """Keep a fault as a finding."""
        self.findings.append(fault.finding)

    @property
    def performed(self) -> bool:
        """Whether there was an engine to perform anything with."""
        return not any(finding.code is FaultCode.NO_ENGINE for finding in self.findings)

    def document(self, run_id: str) -> dict[str, Any]:
        """The document `container.json`. Raises `SchemaError` where the record breaks its schema."""
        parts = {name: value for name, value in vars(self).items() if name != "findings"}
        document = {
            "schema": schema.urn("container"),
            "run_id": run_id,
            "performed": self.performed,
            "findings": [finding.to_json() for finding in self.findings],
            **parts,
        }
        schema.validate("container", document, FILE)
        return document
