"""The build as one sentence: check inputs, lay out the context, build without network, save, normalise, store.

The engine builds with its classic builder, so that no front end is fetched. Two stages are built: `check`, which
fails where the runtime stage is not what it should be, and `runtime`, which ships. Everything that the builds left in
the engine is removed again. Not covered: pushing and running (`publish`, `subject`).
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker

from qualification.container import context, image_archive, oci, oci_store
from qualification.container.faults import ContainerFault, FaultCode
from qualification.container.reference import ImageReference

_MARKED = (
    FaultCode.BASE_BY_TAG,
    FaultCode.WEIGHTS_DIFFER,
    FaultCode.WHEEL_HASH_DIFFERS,
    FaultCode.LOCK_INCOMPLETE,
    FaultCode.IMAGE_MALFORMED,
)
_PIP_HASHES = "DO NOT MATCH THE HASHES"
_STEP_IMAGE = re.compile(r"^ ---> ([0-9a-f]{12})$", re.MULTILINE)
_MOST_STEPS = 200
_CHUNK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class BuildOrder:
    """What to build.

    Attributes:
        base: where the engine finds the base; `base_layers` are its layers' diff ids, lowest first.
        arguments: the Dockerfile's build arguments besides BASE and SOURCE_DATE_EPOCH.
        epoch: seconds; the one time in the image.
        fresh: use no cached step.
    """

    base: ImageReference
    base_layers: tuple[str, ...]
    context: context.Context
    arguments: Mapping[str, str]
    epoch: int
    fresh: bool = True


def build(client: docker.DockerClient, order: BuildOrder, target: Path) -> oci.Image:
    """Build, normalise and store an image as a layout at `target`.

    Raises:
        ContainerFault: the named fault of a stage, or `build_failed` with the end of the builder's account.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="assay-build-", dir=target.parent) as name,
        leftovers_removed(client, order.fresh) as made,
    ):
        place = Path(name)
        archive = place / "context.tar"
        context.write(order.context, archive, epoch=order.epoch)
        _run(client, archive, order, "check", made)
        local = _run(client, archive, order, "runtime", made)
        archive.unlink()
        saved = place / "saved.tar"
        _save(client, local, saved)
        unpacked = image_archive.unpack(saved, place / "saved")
        saved.unlink()
        return oci_store.save(image_archive.normalised(unpacked, order.base_layers, place, epoch=order.epoch), target)


def _run(client: docker.DockerClient, archive: Path, order: BuildOrder, stage: str, made: set[str]) -> str:
    """Build one stage; ids of the images that its steps make go into `made` as they come."""
    arguments = {**order.arguments, "BASE": str(order.base), "SOURCE_DATE_EPOCH": str(order.epoch)}
    with archive.open("rb") as stream:
        events = client.api.build(
            fileobj=stream,
            custom_context=True,
            dockerfile="Dockerfile",
            target=stage,
            buildargs=arguments,
            network_mode="none",
            nocache=order.fresh and not made,  # the second stage builds on what the first one made
            rm=True,
            forcerm=True,
            pull=False,
            decode=True,
        )
        return _outcome(list(noted(events, made)), stage)


def noted(events: Iterable[Mapping[str, Any]], made: set[str]) -> Iterator[Mapping[str, Any]]:
    """The builder's events, while the image ids that they name are put into `made`."""
    for event in events:
        made.update(_STEP_IMAGE.findall(str(event.get("stream", ""))))
        yield event


def _outcome(events: Sequence[Mapping[str, Any]], stage: str) -> str:
    account = "".join(str(event.get("stream", "")) for event in events)
    error = next((str(event["error"]) for event in events if "error" in event), None)
    if error is not None:
        raise fault_of(account, error, stage)
    identifiers = [str(event["aux"]["ID"]) for event in events if isinstance(event.get("aux"), dict)]
    if not identifiers:
        raise ContainerFault(FaultCode.BUILD_FAILED, f"the builder of stage {stage} named no image: {account[-400:]}")
    return identifiers[-1]


def fault_of(account: str, error: str, stage: str) -> ContainerFault:
    """The named fault in a failed build's account, or `build_failed`."""
    tail = account[-1500:].strip()
    for code in _MARKED:
        start = account.rfind(f"{code}: ")
        if start >= 0:
            return ContainerFault(code, account[start + len(code) + 2 :][:1500].strip())
    if _PIP_HASHES in account:
        return ContainerFault(
            FaultCode.WHEEL_HASH_DIFFERS, f"pip refused a wheel whose hash is not the locked one: {tail[-400:]}"
        )
    return ContainerFault(FaultCode.BUILD_FAILED, f"stage {stage}: {error}; its last lines: {tail[-400:]}")


def _save(client: docker.DockerClient, local: str, target: Path) -> None:
    with target.open("wb") as stream:
        for chunk in client.api.get_image(local, chunk_size=_CHUNK):
            stream.write(chunk)


@contextmanager
def leftovers_removed(client: docker.DockerClient, active: bool = True) -> Iterator[set[str]]:
    """Yield a set for the short ids of images that a build makes, and remove them afterwards; others are left alone.

    With `active` False they stay, as a cache.
    """
    before = frozenset(image["Id"] for image in client.api.images(all=True))
    made: set[str] = set()
    try:
        yield made
    finally:
        if active:
            _remove(client, before, made)


def _remove(client: docker.DockerClient, before: frozenset[str], made: set[str]) -> None:
    """Leaves first: an image can go once nothing is built on it."""
    for _ in range(_MOST_STEPS):
        present = {image["Id"] for image in client.api.images(all=True)} - before
        ours = [image for image in sorted(present) if image.removeprefix("sha256:")[:12] in made]
        if not [image for image in ours if _removed(client, image)]:
            return


def _removed(client: docker.DockerClient, image: str) -> bool:
    try:
        client.api.remove_image(image, force=False, noprune=True)
    except docker.errors.APIError:
        return False
    return True
