"""Pins: which bytes a known model consists of, as data.

A pin without a digest does not load. Files of a snapshot for which no public digest is known are named as `unpinned`:
they may be there, are recorded as found, and nobody pretends to know them. What a directory really holds is
`identity`'s work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qualification import schema, spdx, strictjson
from qualification.digest import Digest
from qualification.errors import InputError
from qualification.paths import PINS, data_file
from qualification.safetensors_inventory import Inventory

WEIGHTS = "weights"


@dataclass(frozen=True, kw_only=True)
class GroupFacts:
    """Tensors whose names begin with `prefix`; `tensors` None in a pin: their number is not published."""

    prefix: str
    tensors: int | None
    parameters: int


@dataclass(frozen=True, kw_only=True)
class InventoryFacts:
    """What is known or was found of a weight file's tensors. None in a pin: not published, so not compared."""

    tensors: int
    parameters: int
    dtypes: Mapping[str, int]
    header_bytes: int | None
    listing_sha256: str | None
    groups: tuple[GroupFacts, ...]

    @classmethod
    def from_json(cls, item: Mapping[str, Any]) -> InventoryFacts:
        """Read an object that a schema has accepted."""
        return cls(
            tensors=item["tensors"],
            parameters=item["parameters"],
            dtypes={entry["dtype"]: entry["tensors"] for entry in item["dtypes"]},
            header_bytes=item["header_bytes"],
            listing_sha256=item["listing_sha256"],
            groups=tuple(GroupFacts(**group) for group in item["groups"]),
        )

    @classmethod
    def of(cls, inventory: Inventory, prefixes: Iterable[str] = ()) -> InventoryFacts:
        """The facts of a file, with one group for each prefix."""
        return cls(
            tensors=len(inventory.tensors),
            parameters=inventory.parameters,
            dtypes=inventory.dtypes,
            header_bytes=inventory.header_bytes,
            listing_sha256=inventory.listing_sha256,
            groups=tuple(_group(inventory, prefix) for prefix in prefixes),
        )

    def to_json(self) -> dict[str, Any]:
        """The object that `pins.json` and `identity.json` hold."""
        return {
            "tensors": self.tensors,
            "parameters": self.parameters,
            "dtypes": [{"dtype": name, "tensors": count} for name, count in sorted(self.dtypes.items())],
            "header_bytes": self.header_bytes,
            "listing_sha256": self.listing_sha256,
            "groups": [vars(group) for group in self.groups],
        }

    def differences(self, found: InventoryFacts) -> tuple[str, ...]:
        """Where `found` departs from these pinned facts, in words."""
        pairs = [(name, getattr(self, name), getattr(found, name)) for name in ("tensors", "parameters", "dtypes")]
        pairs += [(name, getattr(self, name), getattr(found, name)) for name in ("header_bytes", "listing_sha256")]
        groups = {group.prefix: group for group in found.groups}
        for group in self.groups:
            there = groups.get(group.prefix) or GroupFacts(prefix=group.prefix, tensors=0, parameters=0)
            pairs += [(f"parameters of {group.prefix}*", group.parameters, there.parameters)]
            pairs += [(f"tensors of {group.prefix}*", group.tensors, there.tensors)]
        return tuple(f"{name}: {real} instead of {want}" for name, want, real in pairs if want not in (None, real))


@dataclass(frozen=True, kw_only=True)
class FilePin:
    """One file that must be there with exactly this digest. `basis` says how far the pin is public knowledge."""

    path: str
    role: str
    bytes: int
    digest: Digest
    basis: str
    inventory: InventoryFacts | None


@dataclass(frozen=True, kw_only=True)
class ModelPins:
    """One known model: its tier, its licence (SPDX), its pinned files and the names that may be there unpinned."""

    id: str
    revision: str | None
    tier: str
    licence: str
    source: str
    files: tuple[FilePin, ...]
    unpinned: tuple[str, ...]

    def file(self, path: str) -> FilePin | None:
        """The pin of `path`, or None."""
        return next((pin for pin in self.files if pin.path == path), None)


@dataclass(frozen=True, kw_only=True)
class Pins:
    """Every known model, and the document that they came from (for the bundle's copy)."""

    models: tuple[ModelPins, ...]
    document: Mapping[str, Any]

    def of_tier(self, tier: str) -> tuple[ModelPins, ...]:
        """The models of one tier."""
        return tuple(model for model in self.models if model.tier == tier)

    def algorithms(self, path: str) -> tuple[str, ...]:
        """Digest algorithms in which some model pins `path`."""
        return tuple(sorted({pin.digest.algorithm for model in self.models if (pin := model.file(path))}))

    def prefixes(self, path: str) -> tuple[str, ...]:
        """Tensor groups that some model pins in `path`."""
        pins = [pin for model in self.models if (pin := model.file(path)) and pin.inventory]
        return tuple(sorted({group.prefix for pin in pins if pin.inventory for group in pin.inventory.groups}))


def load_pins(path: Path | None = None) -> Pins:
    """The pins in `path`, or those that ship with the package.

    Raises:
        InputError: not strict JSON, not of the schema (a pin without a digest), or contradicting itself.
        OSError: the file cannot be read.
    """
    path = path or data_file(PINS)
    return parse_pins(strictjson.load(path), path.name)


def parse_pins(document: Any, name: str = PINS) -> Pins:
    """Read a parsed document; `name` opens every message. Raises `InputError` as `load_pins` does."""
    pins = read_pins(document, name)
    for model in pins.models:
        if spdx.canonical(model.licence) != model.licence:
            raise InputError(f"{name}: model {model.id}: licence {model.licence!r} is no canonical SPDX expression")
    return pins


def read_pins(document: Any, name: str = PINS) -> Pins:
    """As `parse_pins`, without the spelling of licences, for which the offline verifier has no library."""
    schema.validate(name="pins", document=document, source=name)
    models = tuple(_model(item) for item in document["models"])
    for problem in _contradictions(models):
        raise InputError(f"{name}: {problem}")
    return Pins(models=models, document=document)


def _model(item: Mapping[str, Any]) -> ModelPins:
    return ModelPins(
        **{**item, "files": tuple(_file(entry) for entry in item["files"]), "unpinned": tuple(item["unpinned"])}
    )


def _file(item: Mapping[str, Any]) -> FilePin:
    inventory = InventoryFacts.from_json(item["inventory"]) if item["inventory"] else None
    return FilePin(**{**item, "digest": Digest(**item["digest"]), "inventory": inventory})


def _contradictions(models: tuple[ModelPins, ...]) -> Iterable[str]:
    for name, times in Counter(model.id for model in models).items():
        if times > 1:
            yield f"model {name} is pinned {times} times; keep one"
    for model in models:
        paths = Counter([pin.path for pin in model.files] + list(model.unpinned))
        for path, times in paths.items():
            if times > 1:
                yield f"model {model.id}: {path} is named {times} times; keep one"
        if not spdx.well_formed(model.licence):
            yield f"model {model.id}: licence {model.licence!r} is no SPDX expression"
        if not any(pin.role == WEIGHTS for pin in model.files):
            yield f"model {model.id}: no file of role weights is pinned; a tier needs one"


def _group(inventory: Inventory, prefix: str) -> GroupFacts:
    tensors = inventory.under(prefix)
    return GroupFacts(prefix=prefix, tensors=len(tensors), parameters=sum(tensor.parameters for tensor in tensors))
