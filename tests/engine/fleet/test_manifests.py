"""The manifests of docs/fleet: valid by Kubernetes' own schemas, pinned by digest, probed, bounded, shut off."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from engine.fleet import cli
from engine.fleet.identity import declared_image

kubernetes = pytest.importorskip("kubernetes_validate", reason="the dependency group `fleet-tests` is not installed")
yaml = pytest.importorskip("yaml")

PAGES = Path(__file__).parents[3] / "docs" / "fleet"
PINNED = re.compile(r"[a-z0-9./-]+@(sha256:[0-9a-f]{64})")
OWN_SCHEMA = json.loads(Path(__file__).with_name("ray-cluster.schema.json").read_text())
KUBERNETES = "1.37"


def documents() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((PAGES / "kuberay.yaml").read_text()))


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [document for document in documents() if document["kind"] == kind]


def templates() -> Iterator[dict[str, Any]]:
    """Every pod template."""
    for cluster in of_kind("RayCluster"):
        yield cluster["spec"]["headGroupSpec"]["template"]
        yield from (group["template"] for group in cluster["spec"]["workerGroupSpecs"])
    yield from (deployment["spec"]["template"] for deployment in of_kind("Deployment"))


def containers() -> list[dict[str, Any]]:
    return [container for template in templates() for container in template["spec"]["containers"]]


def check(document: dict[str, Any]) -> None:
    """Raise where a document breaks its schema; a RayCluster's pods are checked as pods."""
    if document["kind"] != "RayCluster":
        kubernetes.validate(document, KUBERNETES, strict=True)
        return
    Draft202012Validator(OWN_SCHEMA).validate(document)
    spec = document["spec"]
    for template in (spec["headGroupSpec"]["template"], *(group["template"] for group in spec["workerGroupSpecs"])):
        kubernetes.validate({"apiVersion": "v1", "kind": "Pod", **deepcopy(template)}, KUBERNETES, strict=True)


def test_every_document_is_valid() -> None:
    assert sorted(document["kind"] for document in documents()) == [
        "Deployment", "NetworkPolicy", "NetworkPolicy", "RayCluster", "Service",
    ]  # fmt: skip
    for document in documents():
        check(document)


@pytest.mark.parametrize("place", ["RayCluster", "Deployment"])
def test_a_field_that_does_not_exist_is_found(place: str) -> None:
    document = deepcopy(of_kind(place)[0])
    spec = document["spec"]["headGroupSpec"] if place == "RayCluster" else document["spec"]
    spec["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    with pytest.raises(Exception, match="readynessProbe"):
        check(document)


def test_images_are_pinned_and_the_declared_digest_is_the_same() -> None:
    for container in containers():
        pinned = PINNED.fullmatch(container["image"])
        assert pinned, container["image"]
        environment = {item["name"]: item.get("value") for item in container["env"]}
        assert declared_image(environment) == pinned[1]


def test_every_container_is_probed_bounded_and_hardened() -> None:
    for container in containers():
        assert {"readinessProbe", "livenessProbe"} <= container.keys()
        for side in ("requests", "limits"):
            assert {"cpu", "memory"} <= container["resources"][side].keys()
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"]
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert not security["allowPrivilegeEscalation"]
    for template in templates():
        assert template["spec"]["securityContext"]["runAsNonRoot"]
        assert template["spec"]["automountServiceAccountToken"] is False


def test_no_container_needs_a_shell_and_the_operator_is_told_so() -> None:
    assert {tuple(container["command"][:3]) for container in containers()} == {
        ("/opt/assay/bin/python", "-m", "ray.scripts.scripts"),  # the image holds no installed scripts
        ("/opt/assay/bin/python", "-m", "engine"),
    }
    assert of_kind("RayCluster")[0]["metadata"]["annotations"]["ray.io/overwrite-container-cmd"] == "true"


def test_the_doors_command_line_is_one_that_we_take() -> None:
    door = of_kind("Deployment")[0]["spec"]["template"]["spec"]["containers"][0]
    assert door["command"][1:4] == ["-m", "engine", "fleet"]
    parser = argparse.ArgumentParser(exit_on_error=False)
    cli.add_arguments(parser)
    found = parser.parse_args(door["command"][4:])
    assert (found.start_node, found.node_resource, found.replicas) == (True, "image-a", 2)


def test_only_pods_of_the_fleet_reach_ray_and_only_named_spaces_the_door() -> None:
    fleet, door = of_kind("NetworkPolicy")
    own = {"podSelector": {"matchLabels": {"app.kubernetes.io/part-of": "assay-fleet"}}}
    assert fleet["spec"]["podSelector"] == own["podSelector"]
    assert fleet["spec"]["ingress"] == [{"from": [own]}]
    assert set(fleet["spec"]["policyTypes"]) == {"Ingress", "Egress"}
    assert [port["port"] for port in door["spec"]["ingress"][0]["ports"]] == [8000]
    for template in templates():
        assert template["metadata"]["labels"]["app.kubernetes.io/part-of"] == "assay-fleet"


def test_the_service_leads_to_the_door() -> None:
    (service,) = of_kind("Service")
    door = of_kind("Deployment")[0]["spec"]["template"]
    assert service["spec"]["selector"].items() <= door["metadata"]["labels"].items()
    named = [port["name"] for port in door["spec"]["containers"][0]["ports"]]
    assert service["spec"]["ports"][0]["targetPort"] in named


def test_the_unit_pins_the_image_by_the_declared_digest() -> None:
    unit = (PAGES / "assay-ray.service").read_text()
    assert "registry.example/assay-fleet@${ASSAY_IMAGE_DIGEST}" in unit
    assert "--env ASSAY_IMAGE_DIGEST" in unit
