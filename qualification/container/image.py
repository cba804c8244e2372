"""`nox -s image`: from a commit to an image layout with report, bill of materials and provenance beside it.

    base -> wheelhouse -> identity -> build (twice, where asked) -> bill of materials -> provenance -> report

Each arrow is a file below the output directory. Nothing is pushed anywhere but to a registry on loopback, which
carries the base.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import docker

from qualification import provenance, schema, strictjson
from qualification.container import base, build, labels, layer_diff, oci_store, publish, source, wheelhouse
from qualification.container.context import Context
from qualification.container.docker_engine import docker_engine, facts
from qualification.container.faults import ContainerFault, FaultCode
from qualification.container.image_tree import ImageTree
from qualification.container.oci import Image
from qualification.container.reference import ImageReference, parse
from qualification.container.registry import loopback_registry
from qualification.container.subject import REPORT
from qualification.container.subject import REPOSITORY as NAME
from qualification.digest import sha256_file
from qualification.identity import UNVERIFIED, Judgement, judge, survey
from qualification.pins import Pins, load_pins
from qualification.sbom.document import SbomSubject, sbom_document
from qualification.sbom.image_parts import image_parts
from qualification.sbom.parts import Part

LAYOUT = "layout"
SBOM = "sbom.cdx.json"
PROVENANCE = "provenance.json"
DISTRIBUTION = "tts-assay"


@dataclass(frozen=True, kw_only=True)
class ImageOrder:
    """What to build and where to put it.

    Attributes:
        base: a base by digest, or None to make one with mmdebstrap.
        builds: how often to build; two show whether the build is reproducible.
        clean: refuse a tree with changes.
    """

    checkout: Path
    output: Path
    variant: str
    model: Path
    pins: Path
    engine: Path
    locks: Path
    wheels: Path
    repository: str
    base: str | None = None
    builds: int = 1
    clean: bool = False


@dataclass(frozen=True, kw_only=True)
class _Inputs:
    """Everything checked before the engine is asked to build."""

    state: source.SourceState
    pins: Pins
    judgement: Judgement
    wheels: tuple[wheelhouse.Wheel, ...]
    runtime: tuple[wheelhouse.Wheel, ...]


def make_image(order: ImageOrder) -> dict[str, Any]:
    """Build and describe the image; returns the report.

    Raises:
        ContainerFault: whatever `faults.FaultCode` names. Nothing of a failed build stays in the engine.
    """
    began = time.time()
    inputs = _checked(order)
    with docker_engine() as client, _base(client, order) as (reference, found):
        report = _built(client, order, inputs, reference, found)
        report["engine"] = facts(client).to_json()
    image = oci_store.load(order.output / LAYOUT)
    _describe(order, inputs, image, report, began)
    return report


def _checked(order: ImageOrder) -> _Inputs:
    state = source.source_state(order.checkout)
    if order.clean:
        source.require_clean(state)
    pins = load_pins(order.pins)
    judgement = judge(survey(order.model, pins), pins)
    if judgement.tier == UNVERIFIED:
        faults = "; ".join(
            f"{item.path}: {item.detail}" for item in judgement.findings if item.outcome not in ("matched", "recorded")
        )
        raise ContainerFault(FaultCode.WEIGHTS_DIFFER, f"{judgement.sentence} {faults}"[:1500])
    runtime = wheelhouse.fill(order.wheels, order.locks / f"runtime-{order.variant}.txt")
    tools = wheelhouse.fill(order.wheels, order.locks / "build.txt")
    unique = {wheel.path: wheel for wheel in (*runtime, *tools)}
    return _Inputs(state=state, pins=pins, judgement=judgement, wheels=tuple(unique.values()), runtime=runtime)


@contextmanager
def _base(client: docker.DockerClient, order: ImageOrder) -> Iterator[tuple[ImageReference, labels.BaseFacts]]:
    """The base where the engine can find it by digest, with its name for the labels."""
    if order.base is not None:
        reference = parse(order.base, by_tag=FaultCode.BASE_BY_TAG)
        publish.pull(client, reference)
        yield reference, labels.BaseFacts(name=reference.name, digest=reference.digest)
        return
    place = order.output.parent / "base"
    image = oci_store.load(place) if (place / "index.json").is_file() else base.make_base(place, base.load_plan())
    with loopback_registry() as registry:
        reference = publish.publish(image, registry, base.REPOSITORY)
        try:
            publish.pull(client, reference, expected_config=image.config.digest)
            yield reference, labels.BaseFacts(name=base.REPOSITORY, digest=reference.digest)
        finally:
            publish.forget(client, image.config.digest)


def _built(
    client: docker.DockerClient, order: ImageOrder, inputs: _Inputs, reference: ImageReference, found: labels.BaseFacts
) -> dict[str, Any]:
    """Build as often as asked, keep the first, compare with the last."""
    arguments = labels.arguments(
        source=inputs.state,
        repository=order.repository,
        version=_version(),
        base=found,
        judgement=inputs.judgement,
        variant=order.variant,
    )
    build_order = build.BuildOrder(
        base=reference,
        base_layers=tuple(client.images.get(str(reference)).attrs["RootFS"]["Layers"]),
        context=_context(order, inputs),
        arguments=arguments,
        epoch=inputs.state.epoch,
    )
    builds, images = [], []
    for number in range(order.builds):
        start = time.monotonic()
        place = order.output / (LAYOUT if number == 0 else f"again-{number}")
        images.append(build.build(client, build_order, place))
        builds.append({"digests": images[-1].digests, "seconds": round(time.monotonic() - start, 1)})
    differences = [vars(item) for again in images[1:] for item in layer_diff.compare(images[0], again)]
    for number in range(1, order.builds):
        if not differences:
            shutil.rmtree(order.output / f"again-{number}")
    equal = all(item["digests"] == builds[0]["digests"] for item in builds)
    return {
        "base": {
            "name": found.name,
            "digest": found.digest,
            "made_by": "mmdebstrap" if order.base is None else "registry",
        },
        "arguments": [{"name": name, "value": value} for name, value in sorted(arguments.items())],
        "builds": builds,
        "reproduction": {
            "builds": len(builds),
            "equal": equal if len(builds) > 1 else None,
            "differences": differences,
        },
    }


def _context(order: ImageOrder, inputs: _Inputs) -> Context:
    return Context(
        dockerfile=order.checkout / "Dockerfile",
        engine=order.engine,
        qualification=order.checkout / "qualification",
        schemas=order.checkout / "schemas",
        locks=order.locks,
        wheels=tuple(wheel.path for wheel in inputs.wheels),
        pins=order.pins,
        model=order.model,
    )


def _describe(order: ImageOrder, inputs: _Inputs, image: Image, report: dict[str, Any], began: float) -> None:
    """Write bill of materials, provenance and report beside the layout."""
    platform = image.manifest.digest
    own = Part(
        kind="own",
        name=NAME,
        version=_version(),
        purl=None,
        licence=labels.LICENCES,
        evidence="this project",
        facts=(("revision", inputs.state.revision),),
    )
    subject = SbomSubject(
        name=NAME,
        version=inputs.state.revision,
        platform_digest=platform,
        epoch=inputs.state.epoch,
        licence=labels.LICENCES,
    )
    hashes = {wheel.name: wheel.sha256 for wheel in inputs.runtime}
    with ImageTree(image.layers) as tree:
        parts = image_parts(tree, inputs.pins, hashes, own)
        sbom = sbom_document(subject, parts)
    report.update(
        {
            "schema": schema.urn("image-build"),
            "variant": order.variant,
            "source": {
                "commit": inputs.state.commit,
                "dirty": inputs.state.dirty,
                "changed": len(inputs.state.changed),
                "epoch": inputs.state.epoch,
            },
            "locks": [
                {"name": name, "sha256": sha256_file(order.locks / name)}
                for name in (f"runtime-{order.variant}.txt", "build.txt")
            ],
            "dockerfile_sha256": sha256_file(order.checkout / "Dockerfile"),
            "pins_sha256": sha256_file(order.pins),
            "wheels": [
                {"name": wheel.name, "version": wheel.version, "sha256": wheel.sha256}
                for wheel in sorted(inputs.wheels, key=lambda wheel: wheel.name)
            ],
            "tier": inputs.judgement.tier,
            "digests": image.digests,
            "layers": [{"digest": layer.digest, "bytes": layer.size} for layer in image.layers],
            "parts": sorted(
                ({"kind": part.kind, "name": part.name} for part in parts),
                key=lambda item: (item["kind"], item["name"]),
            ),
        }
    )
    schema.validate(name="image-build", document=report, source=REPORT)
    statement = provenance.statement(report, harness=_version(), began=began, ended=time.time())
    for name, content in ((SBOM, sbom), (REPORT, strictjson.dumps(report)), (PROVENANCE, strictjson.dumps(statement))):
        (order.output / name).write_bytes(content)


def _version() -> str:
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "0+unknown"
