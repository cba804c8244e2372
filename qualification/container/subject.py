"""A container as the subject of a run: pulled by digest, hardened, drilled, then measured, and gone afterwards.

1. Find the engine; without one, the record says so and nothing else happens.
2. Publish our own image to a registry on loopback, or take somebody else's by digest; pull it back by digest.
3. Drill one container: readiness, view from outside and inside, health under load, SIGTERM mid-stream, restart.
4. Start a fresh container and yield it for measuring.
5. Remove containers, pulled images and the registry, whatever happened, and note what could not be removed.

Every fault becomes a finding of the record and is raised again, so that the caller can go on without a subject.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker
from docker.models.containers import Container

from qualification import schema
from qualification.container import hardening, inside, life, oci_store, publish, wire
from qualification.container.contained import contained, started
from qualification.container.digests import DigestChain, follow
from qualification.container.docker_engine import docker_engine, facts, reason
from qualification.container.faults import ContainerFault, FaultCode, Finding
from qualification.container.hardening import RunSettings
from qualification.container.model_export import exported
from qualification.container.record import ContainerRecord
from qualification.container.reference import ImageReference, parse
from qualification.container.registry import loopback_registry
from qualification.container.registry_client import RegistryClient

REPOSITORY = "assay/engine"
REPORT = "image-build.json"


@dataclass(frozen=True, kw_only=True)
class ContainerOrder:
    """Which image to run: `image` by digest, else the image layout that `nox -s image` left at `layout`."""

    image: str | None = None
    layout: Path | None = None
    registry: str | None = None
    settings: RunSettings = field(default_factory=RunSettings)


@dataclass(frozen=True, kw_only=True)
class ContainerSubject:
    """A ready container: `pid` as the host numbers its main process, `model` a copy of the image's own model files."""

    url: str
    pid: int
    reference: ImageReference
    chain: DigestChain | None
    model: Path | None
    container: Container

    def alive(self) -> bool:
        """Whether it still runs; one that is gone does not."""
        try:
            self.container.reload()
        except docker.errors.NotFound:
            return False
        return bool(self.container.status == "running")

    def log_tail(self) -> tuple[str, ...]:
        """The last lines that it wrote."""
        return tuple(life.log_tail(self.container).splitlines())


@contextmanager
def container_subject(order: ContainerOrder, record: ContainerRecord) -> Iterator[ContainerSubject]:
    """Run the five steps of the module's docstring around the caller's measurement.

    Raises:
        ContainerFault: any fault of `faults.FaultCode`; it is in the record already.
    """
    try:
        with docker_engine() as client:
            record.engine = facts(client).to_json()
            record.build = _build_report(order)
            with _cleaned(client, order.settings, record), ExitStack() as stack:
                reference, expected = _place(order, stack)
                chain = _chain(reference, record)
                pulled = publish.pull(client, reference, expected_config=expected or (chain.config if chain else None))
                _record_image(client, record, reference, chain, pulled)
                _drill(client, reference, order.settings, record)
                yield stack.enter_context(_measured(client, reference, chain, order.settings, record))
    except ContainerFault as fault:
        record.note(fault)
        raise


def _build_report(order: ContainerOrder) -> dict[str, Any] | None:
    """The report that lies beside our own layout; None for somebody else's image."""
    path = order.layout.parent / REPORT if order.layout is not None and order.image is None else None
    return schema.load("image-build", path) if path is not None and path.is_file() else None


def _place(order: ContainerOrder, stack: ExitStack) -> tuple[ImageReference, str | None]:
    """The reference to pull, and the configuration digest that must come back where the image is ours."""
    if order.image is not None:
        return parse(order.image), None
    if order.layout is None or not (order.layout / "index.json").is_file():
        raise ContainerFault(
            FaultCode.IMAGE_MALFORMED, "no image was named and none was built; run `nox -s image` or give --image"
        )
    image = oci_store.load(order.layout)
    registry = order.registry or stack.enter_context(loopback_registry())
    return publish.publish(image, registry, REPOSITORY), image.config.digest


def _chain(reference: ImageReference, record: ContainerRecord) -> DigestChain | None:
    """Digests as the registry holds them.

    None, with the reason in the record, where the registry does not talk to us.
    """
    if reference.registry is None:
        record.digest_proof = {
            "method": "engine_only",
            "detail": "the reference names no registry, so only the engine was asked",
        }
        return None
    with RegistryClient(reference.registry, reference.repository) as client:
        try:
            chain = follow(reference, client, str((record.engine or {})["architecture"]))
        except ContainerFault as fault:
            if fault.code is not FaultCode.REGISTRY_REFUSES:
                raise
            record.digest_proof = {"method": "engine_only", "detail": str(fault)[:500]}
            return None
    record.digest_proof = {
        "method": "hashed_documents",
        "detail": "index, manifest and configuration followed by their bytes",
    }
    return chain


def _record_image(
    client: docker.DockerClient,
    record: ContainerRecord,
    reference: ImageReference,
    chain: DigestChain | None,
    pulled: publish.Pulled,
) -> None:
    attributes = client.images.get(pulled.local_id).attrs
    record.image = {
        "name": reference.repository,
        "reference_digest": reference.digest,
        "digests": {
            "index": chain.index if chain else None,
            "platform": chain.platform if chain else None,
            "config": chain.config if chain else None,
            "local_id": pulled.local_id,
        },
        "pulled_into_empty_store": pulled.fresh,
        "annotations": _pairs(chain.annotations if chain else {}),
        "labels": _pairs(attributes["Config"].get("Labels") or {}),
        "user": attributes["Config"]["User"],
        "bytes": attributes["Size"],
        "layers": list(attributes["RootFS"]["Layers"]),
    }


def _pairs(values: Any) -> list[dict[str, str]]:
    return [{"name": name, "value": values[name]} for name in sorted(values)]


def _drill(
    client: docker.DockerClient, reference: ImageReference, settings: RunSettings, record: ContainerRecord
) -> None:
    with contained(client, reference, settings) as container:
        began = time.monotonic()
        base, record.readiness = started(client, reference, container, settings)
        record.warm_up = life.counters(base)
        record.outside = hardening.outside(container.attrs)
        record.inside = inside.inside(container)
        record.health = life.health_under_load(base)
        record.docker_health = life.docker_health(container, began)
        record.shutdown = life.stop_mid_stream(container, base)
        again, seen = life.start(container, settings)
        record.restart = {"ready_s": seen["ready_s"], "speech_status": wire.speak(again).status}


@contextmanager
def _measured(
    client: docker.DockerClient,
    reference: ImageReference,
    chain: DigestChain | None,
    settings: RunSettings,
    record: ContainerRecord,
) -> Iterator[ContainerSubject]:
    with (
        contained(client, reference, settings) as container,
        tempfile.TemporaryDirectory(prefix="assay-model-") as place,
    ):
        url, seen = life.start(container, settings)
        container.reload()
        pid = container.attrs["State"]["Pid"]
        yield ContainerSubject(
            url=url,
            pid=pid,
            reference=reference,
            chain=chain,
            model=exported(container, Path(place)),
            container=container,
        )
        container.reload()
        record.measured = {
            "ready_s": seen["ready_s"],
            "running_at_end": container.status == "running",
            "same_process": container.attrs["State"]["Pid"] == pid,
            "restart_count": container.attrs["RestartCount"],
            "oom_killed": bool(container.attrs["State"]["OOMKilled"]),
            "changed_paths": sorted(change["Path"] for change in container.diff() or ())[:20],
        }


@contextmanager
def _cleaned(client: docker.DockerClient, settings: RunSettings, record: ContainerRecord) -> Iterator[None]:
    """Afterwards no container of this run is left, and no image that was pulled for it."""
    before = {image.id for image in client.images.list()}
    try:
        yield
    finally:
        ours = {"label": f"{hardening.LABEL}={settings.token}"}
        left = [name for item in client.containers.list(all=True, filters=ours) if (name := _gone(client, item))]
        pulled = {record.image["digests"]["local_id"]} - before if record.image else set()
        images = [image for image in sorted(pulled) if not publish.forget(client, image)]
        record.cleanup = {"containers_left": left, "images_left": images}
        if left or images:
            detail = f"still there: {', '.join([*left, *images])}; remove them by hand"
            record.findings.append(Finding(code=FaultCode.CLEANUP_FAILED, detail=detail))


def _gone(client: docker.DockerClient, container: Container) -> str | None:
    """None once the container is removed, else its short id."""
    try:
        container.remove(force=True, v=True)
    except docker.errors.NotFound:
        return None
    except docker.errors.APIError as error:
        return f"{container.short_id} ({reason(error)})"
    return None
