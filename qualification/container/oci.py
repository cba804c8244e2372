"""OCI images as bytes: configuration, manifest and index, written canonically so that equal content has equal digests.

Layers stay uncompressed: a compressor's version would otherwise leak into the platform digest, and the diff id would
not be the blob digest. Four names of one image are kept apart: index digest, platform (manifest) digest,
configuration digest, and the local id that an engine gives it. Source: the OCI image specification 1.1. Not covered:
moving bytes to a registry (`registry_client`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from qualification.container.layer import Layer

CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
ANNOTATION = "org.opencontainers.image."
_CONFIG_KEYS = (
    "ArgsEscaped",
    "Cmd",
    "Entrypoint",
    "Env",
    "ExposedPorts",
    "Healthcheck",
    "Labels",
    "StopSignal",
    "User",
    "Volumes",
    "WorkingDir",
)


@dataclass(frozen=True, kw_only=True)
class Blob:
    """Bytes with their digest and media type."""

    media_type: str
    content: bytes

    @property
    def digest(self) -> str:
        return f"sha256:{hashlib.sha256(self.content).hexdigest()}"

    def descriptor(self) -> dict[str, Any]:
        """The object by which another document points here."""
        return {"mediaType": self.media_type, "digest": self.digest, "size": len(self.content)}


@dataclass(frozen=True, kw_only=True)
class Image:
    """One platform's image and the index that holds it alone."""

    config: Blob
    manifest: Blob
    index: Blob
    layers: tuple[Layer, ...]

    @property
    def digests(self) -> dict[str, str]:
        """The three digests that do not depend on an engine."""
        return {"index": self.index.digest, "platform": self.manifest.digest, "config": self.config.digest}


def assemble(
    *,
    layers: Sequence[Layer],
    source: Mapping[str, Any],
    annotations: Mapping[str, str],
    epoch: int,
    steps: Sequence[str],
) -> Image:
    """Build an image from normalised layers.

    Args:
        source: an engine's image configuration; only what decides how the image runs is taken from it.
        steps: one line a layer, saying what made it.
    """
    created = timestamp(epoch)
    config = Blob(media_type=CONFIG_TYPE, content=canonical(_config(layers, source, created, steps)))
    manifest = Blob(media_type=MANIFEST_TYPE, content=canonical(_manifest(config, layers, annotations)))
    platform = {"architecture": source["architecture"], "os": source["os"]}
    index = {
        "schemaVersion": 2,
        "mediaType": INDEX_TYPE,
        "annotations": dict(annotations),
        "manifests": [{**manifest.descriptor(), "platform": platform}],
    }
    return Image(
        config=config,
        manifest=manifest,
        index=Blob(media_type=INDEX_TYPE, content=canonical(index)),
        layers=tuple(layers),
    )


def _config(layers: Sequence[Layer], source: Mapping[str, Any], created: str, steps: Sequence[str]) -> dict[str, Any]:
    running = source.get("config") or {}
    return {
        "architecture": source["architecture"],
        "os": source["os"],
        "created": created,
        "config": {key: running[key] for key in _CONFIG_KEYS if running.get(key)},
        "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in layers]},
        "history": [{"created": created, "created_by": step} for step in steps],
    }


def _manifest(config: Blob, layers: Sequence[Layer], annotations: Mapping[str, str]) -> dict[str, Any]:
    return {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "annotations": dict(annotations),
        "config": config.descriptor(),
        "layers": [{"mediaType": LAYER_TYPE, "digest": layer.digest, "size": layer.size} for layer in layers],
    }


def canonical(document: Mapping[str, Any]) -> bytes:
    """JSON with sorted keys and no spaces: the bytes that are hashed."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def timestamp(epoch: int) -> str:
    """RFC 3339 in UTC, whole seconds."""
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
