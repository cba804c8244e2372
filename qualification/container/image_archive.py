"""From what an engine saved to an image of ours: the base's layers as they are, every later layer normalised.

An engine writes its clock, its host name and its own ids into an image; two builds of one commit would never be
equal. Here the saved archive is unpacked, each layer above the base is rewritten deterministically, and the
configuration keeps only what decides how the image runs. Source: the archive format of `docker save`.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qualification.container import layer, oci
from qualification.container.faults import ContainerFault, FaultCode


@dataclass(frozen=True, kw_only=True)
class SavedImage:
    """An unpacked archive: the configuration and the layers' files, lowest first."""

    config: Mapping[str, Any]
    layers: tuple[Path, ...]


def unpack(archive: Path, directory: Path) -> SavedImage:
    """Unpack the members that matter of a saved archive that holds one image.

    Raises:
        ContainerFault: `image_malformed` for an archive of another shape.
    """
    try:
        with tarfile.open(archive) as saved:
            saved.extractall(directory, filter="data")
        entries = json.loads((directory / "manifest.json").read_bytes())
        config = json.loads((directory / entries[0]["Config"]).read_bytes())
        layers = tuple(directory / name for name in entries[0]["Layers"])
    except (OSError, ValueError, KeyError, IndexError, tarfile.TarError) as error:
        raise ContainerFault(
            FaultCode.IMAGE_MALFORMED, f"the engine saved an archive that cannot be read: {error}"
        ) from error
    return SavedImage(config=config, layers=layers)


def normalised(saved: SavedImage, base: Sequence[str], directory: Path, *, epoch: int) -> oci.Image:
    """The deterministic image: the layers whose diff ids are `base` as they are, then each later layer rewritten.

    Labels become annotations.

    Raises:
        ContainerFault: `image_malformed` where the image does not start with the base's layers.
    """
    if tuple(saved.config["rootfs"]["diff_ids"][: len(base)]) != tuple(base):
        raise ContainerFault(
            FaultCode.IMAGE_MALFORMED,
            "the image does not start with the layers of its base; build it from the named base",
        )
    steps = [step.get("created_by", "") for step in saved.config["history"] if not step.get("empty_layer")]
    layers = [layer.measured(path) for path in saved.layers[: len(base)]]
    if [item.digest for item in layers] != list(base):
        raise ContainerFault(
            FaultCode.IMAGE_MALFORMED, "the engine saved other bytes for the base's layers than it names; build again"
        )
    kept = ["base"] * len(base)
    for number, (path, step) in list(enumerate(zip(saved.layers, steps, strict=True)))[len(base) :]:
        rewritten = layer.normalise(path, directory / f"{number}.tar", epoch=epoch)
        if rewritten is not None:
            layers.append(rewritten)
            kept.append(_step(step))
    labels = saved.config["config"].get("Labels") or {}
    return oci.assemble(layers=layers, source=saved.config, annotations=labels, epoch=epoch, steps=kept)


def _step(text: str) -> str:
    """What made a layer, without the ids that a builder puts into it: `COPY dir:<hash> in /x` names the target only."""
    words = text.removeprefix("/bin/sh -c #(nop) ").split()
    return " ".join(word for word in words if not word.startswith(("dir:", "file:", "multi:"))) or "step"
