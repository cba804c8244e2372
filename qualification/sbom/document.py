"""The bill of materials as a CycloneDX document: a pure function of the parts and the platform digest.

The library writes and validates; it has no model card yet, so that one object is added to its output and the whole is
validated again. Source: CycloneDX 1.6. Not covered: what the licences amount to (the gate `sbom.licences`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from qualification import strictjson
from qualification.errors import InputError
from qualification.sbom.parts import Part

PROPERTY = "assay:"
_TYPES = {
    "python": ComponentType.LIBRARY,
    "debian": ComponentType.LIBRARY,
    "model": ComponentType.MACHINE_LEARNING_MODEL,
    "weights": ComponentType.FILE,
    "vendored": ComponentType.FILE,
    "own": ComponentType.APPLICATION,
}


@dataclass(frozen=True, kw_only=True)
class SbomSubject:
    """The image that the document is about."""

    name: str
    version: str
    platform_digest: str
    epoch: int
    licence: str


def sbom_document(subject: SbomSubject, parts: Iterable[Part]) -> bytes:
    """The document's bytes.

    Raises:
        InputError: where CycloneDX's own schema refuses the document: a fault of ours or of a part's metadata.
    """
    ordered = sorted(parts, key=lambda part: (part.kind, part.name))
    bom = Bom(serial_number=uuid5(NAMESPACE_URL, f"assay:{subject.platform_digest}"), version=1)
    bom.metadata.timestamp = datetime.fromtimestamp(subject.epoch, UTC)
    bom.metadata.component = _root(subject)
    components = {part.ref: _component(part) for part in ordered}
    bom.components.update(components.values())
    _connect(bom, ordered, components)
    document = json.loads(JsonV1Dot6(bom).output_as_string())
    content = strictjson.dumps(_finished(document, [part for part in ordered if part.kind == "model"]))
    for problem in faults(content):
        raise InputError(f"the bill of materials breaks CycloneDX 1.6: {problem}")
    return content


def faults(content: bytes) -> Sequence[str]:
    """What CycloneDX's schema has against a document; empty for a valid one."""
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(content.decode("utf-8"))
    return () if error is None else (str(error.data)[:400],)


def _root(subject: SbomSubject) -> Component:
    digest = subject.platform_digest.removeprefix("sha256:")
    return Component(
        name=subject.name,
        version=subject.version,
        type=ComponentType.CONTAINER,
        bom_ref="image",
        purl=PackageURL(type="oci", name=subject.name.rpartition("/")[2], version=subject.platform_digest),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
        licenses=[LicenseExpression(value=subject.licence)],
    )


def _component(part: Part) -> Component:
    notes = [("kind", part.kind), ("licence-evidence", part.evidence), *part.facts]
    notes += [("skipped", part.skipped)] if part.skipped else []
    return Component(
        name=part.name,
        version=part.version,
        type=_TYPES[part.kind],
        bom_ref=part.ref,
        purl=PackageURL.from_string(part.purl) if part.purl else None,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=part.sha256)] if part.sha256 else [],
        licenses=[LicenseExpression(value=part.licence)] if part.licence else [],
        properties=[Property(name=PROPERTY + name, value=value) for name, value in notes],
    )


def _connect(bom: Bom, parts: Sequence[Part], components: Mapping[str, Component]) -> None:
    """The image needs every part; a part needs the parts of its kind that it names."""
    by_name = {(part.kind, part.name): components[part.ref] for part in parts}
    root = bom.metadata.component
    assert root is not None  # set by the only caller
    bom.register_dependency(root, components.values())
    for part in parts:
        needed = [
            by_name[part.kind, name] for name in part.requires if (part.kind, name) in by_name and name != part.name
        ]
        bom.register_dependency(components[part.ref], needed)


def _finished(document: dict[str, Any], models: Sequence[Part]) -> dict[str, Any]:
    """Add the model cards, and fix the order of whatever the library keeps in sets."""
    cards = {part.ref: model_card(part) for part in models}
    for component in document["components"]:
        if component["bom-ref"] in cards:
            component["modelCard"] = cards[component["bom-ref"]]
    return _sorted(document)  # type: ignore[no-any-return]  # an object stays an object


def model_card(part: Part) -> dict[str, Any]:
    """What is known of the model, and no more; figures belong to the evidence, not to a card."""
    return {
        "modelParameters": {
            "task": "text-to-speech",
            "architectureFamily": "transformer",
            "modelArchitecture": "talker, code predictor and causal codec decoder at 12.5 frames a second",
            "inputs": [{"format": "text"}, {"format": "voice description"}],
            "outputs": [{"format": "audio, 24 kHz mono PCM"}],
        },
        "considerations": {
            "technicalLimitations": ["Ending naturally is measured; being intelligible is not implied by it."],
            "useCases": ["Speech in a voice that is described in words"],
        },
        "properties": [{"name": PROPERTY + name, "value": value} for name, value in part.facts],
    }


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return sorted((_sorted(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    return value
