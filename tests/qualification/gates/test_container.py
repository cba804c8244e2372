"""The gates of container, bill of materials and provenance: a good bundle passes, and each single change is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qualification import paths
from qualification.container.record import ContainerRecord
from qualification.evaluation import Gate
from qualification.gates.container_evidence import CONTAINER, PROVENANCE, SBOM
from qualification.gates.container_hardening import ContainerHardeningGate
from qualification.gates.container_identity import ContainerIdentityGate
from qualification.gates.container_lifecycle import ContainerLifecycleGate
from qualification.gates.container_readiness import ContainerReadinessGate
from qualification.gates.container_reproducible import ContainerReproducibleGate
from qualification.gates.provenance import ProvenanceGate
from qualification.gates.sbom_complete import SbomCompleteGate
from qualification.gates.sbom_licences import SbomLicencesGate
from qualification.results import Outcome
from tests.qualification.gates.container_bundle import container_bundle
from tests.qualification.gates.evidence import Changed

IDENTITY, HARDENING, READINESS = ContainerIdentityGate(), ContainerHardeningGate(), ContainerReadinessGate()
LIFECYCLE, REPRODUCIBLE = ContainerLifecycleGate(), ContainerReproducibleGate()
COMPLETE, LICENCES, PROVENANCE_GATE = SbomCompleteGate(), SbomLicencesGate(), ProvenanceGate()
GATES: tuple[Gate, ...] = (IDENTITY, HARDENING, READINESS, LIFECYCLE, REPRODUCIBLE, COMPLETE, LICENCES, PROVENANCE_GATE)
STATEMENT = "predicate.buildDefinition."
OTHER = "sha256:" + "0" * 63 + "1"
ids = [gate.id for gate in GATES]


def _set(place: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Set the value at a dotted path, in which numbers are positions."""

    def change(document: Any) -> None:
        *steps, last = (int(step) if step.lstrip("-").isdigit() else step for step in place.split("."))
        for step in steps:
            document = document[step]
        document[last] = value

    return change


@pytest.mark.parametrize("gate", GATES, ids=ids)
def test_the_good_bundle_passes(tmp_path: Path, gate: Gate) -> None:
    answer = container_bundle(tmp_path).answer(gate)
    assert (answer.outcome, answer.detail) == (Outcome.PASSED, answer.detail)
    assert answer.n >= 1


@pytest.mark.parametrize("gate", GATES, ids=ids)
def test_without_a_container_nothing_was_performed(tmp_path: Path, gate: Gate) -> None:
    changed = container_bundle(tmp_path)
    (changed.root / CONTAINER).unlink()
    answer = changed.answer(gate)
    assert (answer.outcome, answer.reason_code) == (Outcome.NOT_PERFORMED, "no_container")


@pytest.mark.parametrize("gate", GATES, ids=ids)
def test_without_an_engine_the_reason_is_the_finding(tmp_path: Path, gate: Gate) -> None:
    changed = container_bundle(tmp_path)
    document = ContainerRecord().document("20260101-000000-test")
    document |= {"performed": False, "findings": [{"code": "no_engine", "detail": "no Docker engine answers here"}]}
    (changed.root / CONTAINER).write_text(json.dumps(document))
    answer = changed.answer(gate)
    assert (answer.outcome, answer.reason_code) == (Outcome.NOT_PERFORMED, "no_container_engine")
    assert "no Docker engine" in answer.detail


@pytest.mark.parametrize(
    ("gate", "part"),
    [(IDENTITY, "image"), (HARDENING, "inside"), (READINESS, "readiness"), (LIFECYCLE, "shutdown")],
    ids=ids[:4],
)
def test_a_run_that_ended_early_fails_with_its_finding(tmp_path: Path, gate: Gate, part: str) -> None:
    changed = container_bundle(tmp_path).document(CONTAINER, _set(part, None))
    changed.document(CONTAINER, _set("findings", [{"code": "never_ready", "detail": "not ready within 60 s"}]))
    answer = changed.answer(gate)
    assert answer.outcome is Outcome.FAILED
    assert "never_ready" in answer.detail


@pytest.mark.parametrize(
    ("gate", "path", "place", "value", "words"),
    [
        (IDENTITY, CONTAINER, "image.digests.local_id", OTHER, "the engine's id"),
        (IDENTITY, CONTAINER, "image.reference_digest", OTHER, "the reference's digest"),
        (IDENTITY, CONTAINER, "image.digests.platform", OTHER, "platform digest"),
        (IDENTITY, CONTAINER, "build.digests.config", OTHER, "the build report has this config"),
        (IDENTITY, CONTAINER, "inside.model.0.sha256", "0" * 64, "identity.json"),
        (IDENTITY, CONTAINER, "inside.model.0.mode", "0644", "mode 0444"),
        (IDENTITY, CONTAINER, "inside.model.0.uid", 10001, "of root"),
        (IDENTITY, CONTAINER, "inside.model", [], "identity.json"),
        (IDENTITY, paths.RUN, "subject.image.index", OTHER, "run.json names the same index"),
        (IDENTITY, paths.RUN, "subject.image", None, "run.json says"),
        (HARDENING, CONTAINER, "outside.read_only", False, "read-only"),
        (HARDENING, CONTAINER, "outside.privileged", True, "privileged"),
        (HARDENING, CONTAINER, "outside.cap_drop", [], "capabilities dropped"),
        (HARDENING, CONTAINER, "outside.cap_add", ["NET_ADMIN"], "capabilities dropped"),
        (HARDENING, CONTAINER, "outside.security_options", ["seccomp=unconfined"], "default filter"),
        (HARDENING, CONTAINER, "outside.tmpfs", [], "/tmp"),
        (HARDENING, CONTAINER, "outside.tmpfs.0.options", ["size=64m", "nosuid", "nodev"], "/tmp"),
        (HARDENING, CONTAINER, "outside.pids_limit", 0, "processes"),
        (HARDENING, CONTAINER, "outside.memory_bytes", 0, "memory"),
        (HARDENING, CONTAINER, "outside.memory_swap_bytes", -1, "memory"),
        (HARDENING, CONTAINER, "outside.published.0.host", "0.0.0.0", "loopback"),
        (HARDENING, CONTAINER, "outside.mounts", ["/data"], "mounts"),
        (HARDENING, CONTAINER, "outside.host_namespaces", ["PidMode"], "namespaces"),
        (HARDENING, CONTAINER, "outside.user", "0", "user"),
        (HARDENING, CONTAINER, "engine.security_options", [], "filters"),
        (HARDENING, CONTAINER, "inside.status.CapBnd", "00000000a80425fb", "capability inside"),
        (HARDENING, CONTAINER, "inside.status.NoNewPrivs", "0", "NoNewPrivs"),
        (HARDENING, CONTAINER, "inside.status.Seccomp", "0", "Seccomp"),
        (HARDENING, CONTAINER, "inside.uid", 0, "inside"),
        (HARDENING, CONTAINER, "inside.mounts", [], "mounts"),
        (HARDENING, CONTAINER, "inside.execution_in_tmp", "executed", "runs from /tmp"),
        (HARDENING, CONTAINER, "inside.tools", ["/bin/sh"], "shell"),
        (HARDENING, CONTAINER, "inside.writes.0.result", "written", "writing to /"),
        (READINESS, CONTAINER, "readiness.ready_s", 20.5, "limit 20"),
        (READINESS, CONTAINER, "restart.ready_s", 21, "restart"),
        (READINESS, CONTAINER, "measured", None, "measured"),
        (READINESS, CONTAINER, "readiness.changes.1.ready", 200, "only in the end"),
        (READINESS, CONTAINER, "readiness.early_request.status", 200, "before readiness"),
        (READINESS, CONTAINER, "warm_up", ["assay_engine_frame_steps_total 0.0"], "had worked"),
        (READINESS, CONTAINER, "docker_health", None, "health check"),
        (READINESS, CONTAINER, "docker_health.status", "unhealthy", "health check"),
        (LIFECYCLE, CONTAINER, "health.busy", 1, "slots"),
        (LIFECYCLE, CONTAINER, "health.slots", 0, "slots"),
        (LIFECYCLE, CONTAINER, "health.probes", [], "health answers"),
        (LIFECYCLE, CONTAINER, "health.probes.0.status", None, "health answers"),
        (LIFECYCLE, CONTAINER, "health.extra_status", 200, "one request too many"),
        (LIFECYCLE, CONTAINER, "health.after_status", 429, "after the streams"),
        (LIFECYCLE, CONTAINER, "shutdown.streaming", False, "under way"),
        (LIFECYCLE, CONTAINER, "shutdown.seconds", 35.5, "SIGTERM"),
        (LIFECYCLE, CONTAINER, "shutdown.exited", False, "SIGTERM"),
        (LIFECYCLE, CONTAINER, "shutdown.exit_code", 137, "137"),
        (LIFECYCLE, CONTAINER, "shutdown.stream_end", "broken", "broken"),
        (LIFECYCLE, CONTAINER, "shutdown.late_request_status", 200, "late request"),
        (LIFECYCLE, CONTAINER, "shutdown.orphans", [1], "outlived"),
        (LIFECYCLE, CONTAINER, "restart.speech_status", 503, "restart"),
        (LIFECYCLE, CONTAINER, "measured.running_at_end", False, "ran through"),
        (LIFECYCLE, CONTAINER, "measured.oom_killed", True, "ran through"),
        (LIFECYCLE, CONTAINER, "measured.changed_paths", ["/x"], "changed no file"),
        (LIFECYCLE, CONTAINER, "cleanup", None, "left behind"),
        (LIFECYCLE, CONTAINER, "cleanup.images_left", ["sha256:1"], "left behind"),
        (LIFECYCLE, CONTAINER, "findings", [{"code": "cleanup_failed", "detail": "x"}], "finding"),
        (REPRODUCIBLE, CONTAINER, "build.builds.1.digests.platform", OTHER, "Builds differ"),
        (COMPLETE, SBOM, "metadata.component.hashes.0.content", "0" * 64, "platform digest"),
        (COMPLETE, SBOM, "components.0.name", "other", "is listed once"),
        (COMPLETE, CONTAINER, "build.parts.0.name", "other", "listed"),
        (COMPLETE, SBOM, "components.-1.hashes.0.content", "0" * 64, "hashes seen inside"),
        (LICENCES, SBOM, "components.3.licenses", [], "no licence found"),
        (LICENCES, SBOM, "components.3.licenses.0.expression", "AGPL-3.0-only", "AGPL-3.0-only"),
        (LICENCES, paths.POLICY, "waivers", [], "base-files"),
        (LICENCES, paths.POLICY, "waivers.0.until", "2001-01-01", "base-files"),
        (LICENCES, paths.POLICY, "waivers.0.gate", "licences.environment", "base-files"),
        (PROVENANCE_GATE, PROVENANCE, "subject.0.digest.sha256", "0" * 64, "subject"),
        (PROVENANCE_GATE, PROVENANCE, STATEMENT + "internalParameters.dirty", True, "clean"),
        (PROVENANCE_GATE, PROVENANCE, STATEMENT + "resolvedDependencies.0.digest.gitCommit", "0" * 40, "source"),
        (PROVENANCE_GATE, PROVENANCE, STATEMENT + "resolvedDependencies.1.digest.sha256", "0" * 64, "base"),
        (PROVENANCE_GATE, PROVENANCE, STATEMENT + "externalParameters.arguments.X", "/root/secret", "gives nothing"),
        (PROVENANCE_GATE, CONTAINER, "build.dockerfile_sha256", "0" * 64, "Dockerfile"),
    ],
)  # fmt: skip
def test_one_change_fails_by_name(tmp_path: Path, gate: Gate, path: str, place: str, value: Any, words: str) -> None:
    answer = container_bundle(tmp_path).document(path, _set(place, value)).answer(gate)
    assert answer.outcome is Outcome.FAILED
    assert words in answer.detail


@pytest.mark.parametrize(
    ("gate", "place", "value"),
    [
        (IDENTITY, "digest_proof.method", "engine_only"),
        (IDENTITY, "inside.model", None),
        (HARDENING, "inside.status", None),
        (HARDENING, "inside.writes", None),
        (HARDENING, "inside.tools", None),
        (LIFECYCLE, "shutdown.orphans", None),
    ],
)
def test_what_could_not_be_seen_is_inconclusive(tmp_path: Path, gate: Gate, place: str, value: Any) -> None:
    answer = container_bundle(tmp_path).document(CONTAINER, _set(place, value)).answer(gate)
    assert (answer.outcome, answer.reason_code) == (Outcome.INCONCLUSIVE, "not_seen_inside")


@pytest.mark.parametrize(
    ("gate", "change", "code"),
    [
        (REPRODUCIBLE, lambda d: d["build"]["builds"].pop(), "built_once"),
        (REPRODUCIBLE, lambda d: d.update(build=None), "not_built_here"),
        (COMPLETE, lambda d: d.update(build=None), "no_bill_of_materials"),
        (PROVENANCE_GATE, lambda d: d.update(build=None), "no_provenance"),
    ],
)
def test_what_nobody_did_is_not_performed(
    tmp_path: Path, gate: Gate, change: Callable[[Any], object], code: str
) -> None:
    answer = container_bundle(tmp_path).document(CONTAINER, change).answer(gate)
    assert (answer.outcome, answer.reason_code) == (Outcome.NOT_PERFORMED, code)


def test_skipped_components_are_counted_and_do_not_decide(tmp_path: Path) -> None:
    def skip(document: dict[str, Any]) -> None:
        component = document["components"][0]
        component["licenses"] = []
        component["properties"].append({"name": "assay:skipped", "value": "inside a wheel"})

    answer = container_bundle(tmp_path).document(SBOM, skip).answer(LICENCES)
    assert answer.outcome is Outcome.PASSED
    assert "1 lie inside wheels" in answer.detail


def test_a_bill_without_components_does_not_pass(tmp_path: Path) -> None:
    changed: Changed = container_bundle(tmp_path).document(SBOM, _set("components", []))
    assert changed.answer(LICENCES).outcome is Outcome.FAILED
    assert changed.answer(COMPLETE).outcome is Outcome.FAILED
