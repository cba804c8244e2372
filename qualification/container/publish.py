"""From an image on disk to one that an engine runs by digest, with the proof that both are the same.

The bytes that we hashed are pushed, the engine's own copies are removed, and the image is pulled back by the digest
of its index. What the engine then holds must have our configuration digest; so the digest under test is the digest
that others would pull.
"""

from __future__ import annotations

from dataclasses import dataclass

import docker

from qualification.container.faults import ContainerFault, FaultCode
from qualification.container.oci import Image
from qualification.container.reference import ImageReference
from qualification.container.registry_client import RegistryClient


@dataclass(frozen=True, kw_only=True)
class Pulled:
    """What the engine holds after a pull by digest. `fresh`: it held no image of that id before."""

    reference: ImageReference
    local_id: str
    repo_digests: tuple[str, ...]
    fresh: bool


def publish(image: Image, registry: str, repository: str) -> ImageReference:
    """Push `image` and return its reference by index digest. Raises `ContainerFault` (`registry_refuses`)."""
    with RegistryClient(registry, repository) as client:
        client.push(image)
        stored = client.manifest(image.index.digest)
    if stored.content != image.index.content:
        raise ContainerFault(
            FaultCode.DIGEST_DIFFERS,
            f"the registry at {registry} returned another index than was pushed; do not use it",
        )
    return ImageReference(name=f"{registry}/{repository}", digest=image.index.digest)


def pull(client: docker.DockerClient, reference: ImageReference, *, expected_config: str | None = None) -> Pulled:
    """Pull by digest after forgetting any image of that id.

    Raises:
        ContainerFault: `pull_failed`, or `digest_differs` where the engine holds another configuration than expected.
    """
    fresh = expected_config is not None and forget(client, expected_config)
    try:
        image = client.images.pull(str(reference))
    except docker.errors.APIError as error:
        raise ContainerFault(
            FaultCode.PULL_FAILED, f"{reference} cannot be pulled: {error.explanation}; is its registry up?"
        ) from error
    if expected_config is not None and image.id != expected_config:
        forget(client, image.id)
        raise ContainerFault(
            FaultCode.DIGEST_DIFFERS,
            f"{reference} came back as {image.id}, built as {expected_config}; the engine changed it",
        )
    return Pulled(
        reference=reference,
        local_id=image.id,
        repo_digests=tuple(sorted(image.attrs.get("RepoDigests") or ())),
        fresh=fresh,
    )


def forget(client: docker.DockerClient, image_id: str) -> bool:
    """Remove an image with all its names; True once the engine no longer holds it."""
    try:
        client.images.remove(image_id, force=True)
    except docker.errors.ImageNotFound:
        return True
    except docker.errors.APIError:
        return False
    return True
