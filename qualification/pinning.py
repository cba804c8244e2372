"""Writing a pin: the bytes of a model that this project made, as they lie in a directory.

Only for the tiers `reference` and `shape`. Pins of the published checkpoint are public facts and are written by hand
from their source; taking them from files on this machine would make any file `release`.
"""

from __future__ import annotations

import os
from pathlib import Path

from qualification import spdx, strictjson
from qualification.digest import SHA256, Digest
from qualification.errors import InputError
from qualification.identity import FoundFile, role_of, survey
from qualification.pins import WEIGHTS, FilePin, InventoryFacts, ModelPins, Pins, load_pins, parse_pins

TIERS = ("reference", "shape")


def pin_model(
    directory: Path,
    *,
    tier: str,
    model_id: str,
    licence: str,
    source: str,
    pins_path: Path,
    revision: str | None = None,
) -> ModelPins:
    """Pin every file of `directory` by SHA-256 and write the pins file anew; a model of that id is replaced.

    Raises:
        InputError: a tier that may not be measured, a link or special file, an unsound weight file, no weights, a
            licence that is no SPDX expression, or (tier `shape`) tensors other than the published ones.
    """
    if tier not in TIERS:
        raise InputError(f"tier {tier!r} cannot be pinned from files; use {' or '.join(TIERS)}")
    if spdx.canonical(licence) != licence:
        raise InputError(f"licence {licence!r} is no canonical SPDX expression; use an identifier such as Apache-2.0")
    pins = load_pins(pins_path)
    found = survey(directory, pins)
    for item in found:
        _check(item)
    model = ModelPins(
        id=model_id, revision=revision, tier=tier, licence=licence, source=source,
        files=tuple(_pin(item) for item in found), unpinned=(),
    )  # fmt: skip
    if tier == "shape":
        _check_shapes(model, pins)
    _write(pins_path, pins, model)
    return model


def _check(item: FoundFile) -> None:
    if item.kind != "file":
        raise InputError(f"{item.path} is a {item.kind}; pin regular files only")
    if item.faults:
        raise InputError(f"{item.path} is unsound: {item.faults[0].detail}; write it again before pinning")


def _pin(item: FoundFile) -> FilePin:
    assert item.bytes is not None  # a regular file was read
    assert item.sha256 is not None
    return FilePin(
        path=item.path, role=role_of(item.path), bytes=item.bytes, basis="measured", inventory=item.inventory,
        digest=Digest(algorithm=SHA256, value=item.sha256),
    )  # fmt: skip


def _check_shapes(model: ModelPins, pins: Pins) -> None:
    """Synthetic weights must have the published tensors; else their speed says nothing about the published model."""
    for pin in (pin for release in pins.of_tier("release") for pin in release.files if pin.role == WEIGHTS):
        mine = model.file(pin.path)
        if mine is None or mine.inventory is None or pin.inventory is None:
            raise InputError(f"tier shape needs {pin.path}, as the published model has it")
        if _is_part(mine.inventory, pin.inventory):
            continue
        problems = [text for text in pin.inventory.differences(mine.inventory) if not text.startswith("header_bytes")]
        if problems:
            raise InputError(f"tier shape: {pin.path} departs from the published tensors: {'; '.join(problems)}")


def _is_part(mine: InventoryFacts, published: InventoryFacts) -> bool:
    """Whether a file is one named group of the published tensors and nothing else, as a codec's decoder without its
    encoder is.
    """
    return any(
        group in mine.groups and (mine.tensors, mine.parameters) == (group.tensors, group.parameters)
        for group in published.groups
    ) and set(mine.dtypes) <= set(published.dtypes)


def _write(path: Path, pins: Pins, model: ModelPins) -> None:
    others = [item for item in pins.document["models"] if item["id"] != model.id]
    document = {**pins.document, "models": [*others, _model_json(model)]}
    parse_pins(document, path.name)
    fresh = path.with_name(path.name + ".new")
    fresh.write_bytes(strictjson.dumps(document))
    os.replace(fresh, path)


def _model_json(model: ModelPins) -> dict[str, object]:
    return {**vars(model), "files": [_file_json(pin) for pin in model.files], "unpinned": list(model.unpinned)}


def _file_json(pin: FilePin) -> dict[str, object]:
    return {
        **vars(pin),
        "digest": vars(pin.digest),
        "inventory": pin.inventory.to_json() if pin.inventory else None,
    }
