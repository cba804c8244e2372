"""The bill of materials as the gates read it: components with kind, licence and reason to skip. A tool, not a gate.

CycloneDX's own schema is checked where the document is written; here only what the gates rely on is read, strictly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qualification import paths, strictjson
from qualification.errors import SchemaError
from qualification.evidence_view import EvidenceView
from qualification.gates.container_evidence import SBOM

_PROPERTY = "assay:"


@dataclass(frozen=True, kw_only=True)
class Component:
    """One component. `licence` None: no expression is given. `skipped`: why it is not judged by itself."""

    kind: str
    name: str
    licence: str | None
    skipped: str | None
    sha256: str | None


@dataclass(frozen=True, kw_only=True)
class BillOfMaterials:
    """Whose it is (SHA-256 of the platform's manifest) and what it lists."""

    platform_sha256: str
    components: tuple[Component, ...]


def bill_of_materials(evidence: EvidenceView) -> BillOfMaterials | None:
    """The bundle's document; None where there is none.

    Raises:
        SchemaError: where it is no CycloneDX 1.6 document about one image.
    """
    if not evidence.exists(SBOM):
        return None
    document = strictjson.load(paths.locate(evidence.root, SBOM), SBOM)
    try:
        if (document["bomFormat"], document["specVersion"]) != ("CycloneDX", "1.6"):
            raise SchemaError(f"{SBOM}: is {document['bomFormat']} {document['specVersion']}, not CycloneDX 1.6")
        (subject,) = [
            item["content"] for item in document["metadata"]["component"]["hashes"] if item["alg"] == "SHA-256"
        ]
        components = tuple(_component(item) for item in document["components"])
    except (KeyError, TypeError, ValueError) as error:
        raise SchemaError(f"{SBOM}: lacks what the gates read ({error!r}); generate it with `nox -s image`") from error
    return BillOfMaterials(platform_sha256=subject, components=components)


def _component(item: Mapping[str, Any]) -> Component:
    properties = {entry["name"].removeprefix(_PROPERTY): entry["value"] for entry in item["properties"]}
    expressions = [entry["expression"] for entry in item.get("licenses", ())]
    hashes = [entry["content"] for entry in item.get("hashes", ()) if entry["alg"] == "SHA-256"]
    return Component(
        kind=properties["kind"],
        name=item["name"],
        licence=expressions[0] if len(expressions) == 1 else None,
        skipped=properties.get("skipped"),
        sha256=hashes[0] if hashes else None,
    )
