"""An image on disk as an OCI image layout.

What a build leaves behind and what a push sends. Written whole, read back checked.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qualification.container.faults import ContainerFault, FaultCode
from qualification.container.layer import Layer, measured
from qualification.container.oci import CONFIG_TYPE, INDEX_TYPE, MANIFEST_TYPE, Blob, Image, canonical
from qualification.digest import sha256_bytes

_LAYOUT = {"imageLayoutVersion": "1.0.0"}


def save(image: Image, directory: Path) -> Image:
    """Write `image` as a layout at `directory`, replacing what was there.

    Layers on the same disk are linked, not copied.
    """
    shutil.rmtree(directory, ignore_errors=True)
    blobs = directory / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    for blob in (image.config, image.manifest, image.index):
        (blobs / _hex(blob.digest)).write_bytes(blob.content)
    layers = tuple(_place(layer, blobs) for layer in image.layers)
    (directory / "oci-layout").write_bytes(canonical(_LAYOUT))
    top = {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [image.index.descriptor()]}
    (directory / "index.json").write_bytes(canonical(top))
    return Image(config=image.config, manifest=image.manifest, index=image.index, layers=layers)


def load(directory: Path) -> Image:
    """Read a layout that holds one index with one platform.

    Raises:
        ContainerFault: `image_malformed` where a blob is missing or is not what its digest says.
    """
    top = _json((directory / "index.json").read_bytes() if (directory / "index.json").is_file() else b"", "index.json")
    index = _blob(directory, top["manifests"][0]["digest"], INDEX_TYPE)
    manifest = _blob(directory, _json(index.content, "index")["manifests"][0]["digest"], MANIFEST_TYPE)
    described = _json(manifest.content, "manifest")
    config = _blob(directory, described["config"]["digest"], CONFIG_TYPE)
    layers = tuple(_layer(directory, item["digest"]) for item in described["layers"])
    return Image(config=config, manifest=manifest, index=index, layers=layers)


def _place(layer: Layer, blobs: Path) -> Layer:
    target = blobs / _hex(layer.digest)
    if not target.exists():
        try:
            target.hardlink_to(layer.path)
        except OSError:
            shutil.copyfile(layer.path, target)
    return Layer(path=target, digest=layer.digest, size=layer.size)


def _blob(directory: Path, digest: str, media_type: str) -> Blob:
    path = directory / "blobs" / "sha256" / _hex(digest)
    content = path.read_bytes() if path.is_file() else b""
    if f"sha256:{sha256_bytes(content)}" != digest:
        raise ContainerFault(
            FaultCode.IMAGE_MALFORMED, f"blob {digest} of {directory.name} is missing or altered; build the image again"
        )
    return Blob(media_type=media_type, content=content)


def _layer(directory: Path, digest: str) -> Layer:
    path = directory / "blobs" / "sha256" / _hex(digest)
    layer = measured(path) if path.is_file() else None
    if layer is None or layer.digest != digest:
        raise ContainerFault(
            FaultCode.IMAGE_MALFORMED,
            f"layer {digest} of {directory.name} is missing or altered; build the image again",
        )
    return layer


def _json(content: bytes, name: str) -> Mapping[str, Any]:
    try:
        document: Mapping[str, Any] = json.loads(content)
    except ValueError:
        raise ContainerFault(
            FaultCode.IMAGE_MALFORMED, f"{name} of the image layout is missing or no JSON; build the image again"
        ) from None
    return document


def _hex(digest: str) -> str:
    return digest.removeprefix("sha256:")
