"""The model as a component, and each of its files with its own licence, from the identity that the build verified."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from qualification import schema, strictjson
from qualification.container.image_tree import ImageTree
from qualification.container.layout import IDENTITY
from qualification.identity import judge_document
from qualification.pins import ModelPins, Pins
from qualification.sbom.parts import Part


def model_parts(tree: ImageTree, pins: Pins) -> Iterator[Part]:
    """The model first, then its files.

    Raises `KeyError` where the image carries no identity, `InputError` for a malformed one.
    """
    identity = strictjson.loads(tree.read(str(IDENTITY)), "identity.json")
    schema.validate(name="identity", document=identity, source="identity.json")
    model = judge_document(identity, pins).model
    licence = model.licence if model else None
    evidence = f"pins of {model.id}" if model else "no pinned model matches"
    yield _model(model, identity, licence, evidence)
    for item in identity["files"]:
        yield Part(
            kind="weights",
            name=item["path"],
            version=model.revision if model else None,
            purl=None,
            licence=licence,
            evidence=evidence,
            sha256=item["sha256"],
            facts=_facts(item),
        )


def _model(model: ModelPins | None, identity: Mapping[str, Any], licence: str | None, evidence: str) -> Part:
    return Part(
        kind="model",
        name=model.id if model else "unknown model",
        version=model.revision if model else None,
        purl=None,
        licence=licence,
        evidence=evidence,
        facts=(("tier", identity["tier"]), ("source", model.source if model else "unknown")),
    )


def _facts(item: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    facts = [("bytes", str(item["bytes"])), ("role", str(item["role"])), ("outcome", str(item["outcome"]))]
    if item["inventory"]:
        facts += [("tensors", str(item["inventory"]["tensors"])), ("parameters", str(item["inventory"]["parameters"]))]
    return tuple(facts)
