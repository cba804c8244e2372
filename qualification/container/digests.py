"""The digests of an image, each followed from the last by its bytes.

    reference -> index -> platform -> configuration -> local id

A registry's word is not enough: each document that it returns is hashed again here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qualification import strictjson
from qualification.container.faults import ContainerFault, FaultCode
from qualification.container.reference import ImageReference
from qualification.container.registry_client import RegistryClient
from qualification.digest import sha256_bytes
from qualification.errors import StrictJsonError

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, kw_only=True)
class DigestChain:
    """Digests kept apart. `index` None: the reference names a platform's manifest directly."""

    index: str | None
    platform: str
    config: str
    annotations: Mapping[str, str]
    layers: tuple[str, ...]


def follow(reference: ImageReference, client: RegistryClient, machine: str) -> DigestChain:
    """Follow the digests of `reference` in its registry, for this machine's platform.

    Raises:
        ContainerFault: `digest_differs` where bytes are not what their digest says, `registry_refuses`, or
        `image_malformed`.
    """
    top = _fetched(client, reference.digest)
    index = None
    platform = reference.digest
    manifest = top
    if "manifests" in top:
        index = reference.digest
        platform = _platform(top, ARCHITECTURE.get(machine, machine))
        manifest = _fetched(client, platform)
    try:
        config = str(manifest["config"]["digest"])
        layers = tuple(str(item["digest"]) for item in manifest["layers"])
    except (KeyError, TypeError):
        raise ContainerFault(FaultCode.IMAGE_MALFORMED, f"{platform} is no image manifest; name an image") from None
    return DigestChain(
        index=index,
        platform=platform,
        config=config,
        annotations=dict(manifest.get("annotations") or {}),
        layers=layers,
    )


def _fetched(client: RegistryClient, digest: str) -> Mapping[str, Any]:
    content = client.manifest(digest).content
    if f"sha256:{sha256_bytes(content)}" != digest:
        raise ContainerFault(
            FaultCode.DIGEST_DIFFERS, f"the registry returned other bytes than {digest}; do not trust it"
        )
    try:
        document: Mapping[str, Any] = strictjson.loads(content, digest)
    except StrictJsonError as error:
        raise ContainerFault(FaultCode.IMAGE_MALFORMED, f"{digest} is not strict JSON: {error}") from error
    return document


def _platform(index: Mapping[str, Any], architecture: str) -> str:
    for entry in index["manifests"]:
        platform = entry.get("platform", {})
        if platform.get("os") == "linux" and platform.get("architecture") == architecture:
            return str(entry["digest"])
    raise ContainerFault(
        FaultCode.IMAGE_MALFORMED, f"the image has no manifest for linux/{architecture}; build it for this machine"
    )
