"""The bill of materials: valid, equal bytes every time, about one digest, and nothing found is left out."""

from __future__ import annotations

import json

import pytest

from qualification.sbom.document import SbomSubject, faults, sbom_document
from qualification.sbom.parts import Part

SUBJECT = SbomSubject(
    name="assay/engine", version="abc", platform_digest="sha256:" + "a" * 64, epoch=5, licence="Apache-2.0"
)
PARTS = (
    Part(
        kind="python",
        name="h11",
        version="1",
        purl="pkg:pypi/h11@1",
        licence="MIT",
        evidence="e",
        sha256="b" * 64,
        requires=("six",),
    ),
    Part(kind="python", name="six", version="1", purl="pkg:pypi/six@1", licence=None, evidence="none"),
    Part(
        kind="model",
        name="m/v",
        version="r",
        purl=None,
        licence="Apache-2.0",
        evidence="pins",
        facts=(("tier", "release"),),
    ),
    Part(
        kind="weights",
        name="model.safetensors",
        version="r",
        purl=None,
        licence="Apache-2.0",
        evidence="pins",
        sha256="c" * 64,
    ),
    Part(
        kind="vendored",
        name="numpy.libs/lib.so",
        version=None,
        purl=None,
        licence=None,
        evidence="none",
        skipped="inside a wheel",
    ),
)


def _document(parts: tuple[Part, ...] = PARTS) -> dict[str, object]:
    document: dict[str, object] = json.loads(sbom_document(SUBJECT, parts))
    return document


def test_it_is_valid_and_the_same_in_any_order() -> None:
    content = sbom_document(SUBJECT, PARTS)
    assert faults(content) == ()
    assert sbom_document(SUBJECT, PARTS[::-1]) == content


def test_validation_can_fail() -> None:
    broken = json.loads(sbom_document(SUBJECT, PARTS))
    broken["components"][0]["type"] = "spaceship"
    assert faults(json.dumps(broken).encode())


def test_every_part_is_listed_and_skipped_ones_say_why() -> None:
    document = json.loads(sbom_document(SUBJECT, PARTS))
    listed = {
        item["name"]: {entry["name"]: entry["value"] for entry in item["properties"]} for item in document["components"]
    }
    assert set(listed) == {part.name for part in PARTS}
    assert listed["numpy.libs/lib.so"]["assay:skipped"] == "inside a wheel"


def test_the_model_is_a_component_with_a_card() -> None:
    document = json.loads(sbom_document(SUBJECT, PARTS))
    (model,) = [item for item in document["components"] if item["type"] == "machine-learning-model"]
    assert model["modelCard"]["modelParameters"]["task"] == "text-to-speech"
    assert {"name": "assay:tier", "value": "release"} in model["modelCard"]["properties"]


def test_it_is_about_the_platform_digest() -> None:
    document = json.loads(sbom_document(SUBJECT, PARTS))
    assert document["metadata"]["component"]["hashes"] == [{"alg": "SHA-256", "content": "a" * 64}]
    assert document["metadata"]["timestamp"].startswith("1970-01-01T00:00:05")


@pytest.mark.parametrize("dependency", ["pkg:pypi/six@1"])
def test_needs_become_edges(dependency: str) -> None:
    edges = {
        item["ref"]: item.get("dependsOn", []) for item in json.loads(sbom_document(SUBJECT, PARTS))["dependencies"]
    }
    assert edges["pkg:pypi/h11@1"] == [dependency]
    assert len(edges["image"]) == len(PARTS)
