"""Every gate that this version can answer, by id. Run and verifier evaluate the same table over the same files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from qualification.evaluation import Gate
from qualification.gates.absent import ABSENT_GATES
from qualification.gates.audio import IntegrityGate, SpeechGate
from qualification.gates.bench import BenchGate
from qualification.gates.container_hardening import ContainerHardeningGate
from qualification.gates.container_identity import ContainerIdentityGate
from qualification.gates.container_lifecycle import ContainerLifecycleGate
from qualification.gates.container_parity import ContainerParityGate
from qualification.gates.container_readiness import ContainerReadinessGate
from qualification.gates.container_reproducible import ContainerReproducibleGate
from qualification.gates.environment import EnvironmentGate
from qualification.gates.eos import BoundGate, CoverageGate, RateGate
from qualification.gates.identity import CONFIG_GATE, WEIGHTS_GATE
from qualification.gates.licences import ENVIRONMENT_GATE, MODEL_GATE
from qualification.gates.provenance import ProvenanceGate
from qualification.gates.sbom_complete import SbomCompleteGate
from qualification.gates.sbom_licences import SbomLicencesGate
from qualification.gates.source import SourceGate
from qualification.gates.telemetry import EnergyGate, SpacingGate
from qualification.gates.wire import ContractGate, ReproducibilityGate

_GATES: Final[tuple[Gate, ...]] = (
    WEIGHTS_GATE,
    CONFIG_GATE,
    ENVIRONMENT_GATE,
    MODEL_GATE,
    CoverageGate(),
    RateGate(),
    BoundGate(),
    IntegrityGate(),
    SpeechGate(),
    ContractGate(),
    ReproducibilityGate(),
    BenchGate(id="bench.b1", profile="B1"),
    BenchGate(id="bench.b3", profile="B3"),
    BenchGate(id="bench.b6", profile="B6"),
    EnvironmentGate(),
    SpacingGate(),
    EnergyGate(),
    SourceGate(),
    ContainerIdentityGate(),
    ContainerHardeningGate(),
    ContainerReadinessGate(),
    ContainerLifecycleGate(),
    ContainerReproducibleGate(),
    ContainerParityGate(),
    SbomCompleteGate(),
    SbomLicencesGate(),
    ProvenanceGate(),
    *ABSENT_GATES,
)
GATES: Final[Mapping[str, Gate]] = {gate.id: gate for gate in _GATES}
