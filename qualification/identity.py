"""Which model this is: every file's digest against the pins, and the tier that follows from them and nothing else.

Three steps, each usable alone: `survey` looks at a directory, `judge` (pure) compares what was found with the pins, and
`identity_document` writes it down. `judge_document` judges a stored document again, so that a verifier need not believe
the tier that is written in it.

A tier needs a complete match: every pinned file there with its digest, nothing extra, every weight file sound, and no
symbolic link; else it is `unverified`. Not covered: whether the running engine really loaded these files.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qualification import schema
from qualification.digest import GIT_BLOB_SHA1, SHA256, Digest, digest_file
from qualification.errors import InputError
from qualification.pins import WEIGHTS, FilePin, InventoryFacts, ModelPins, Pins
from qualification.safetensors_inventory import Fault, take_inventory

UNVERIFIED = "unverified"
ACCEPTABLE = ("matched", "recorded")
SAFETENSORS = ".safetensors"


@dataclass(frozen=True, kw_only=True)
class FoundFile:
    """One thing that lies in the directory. Digests are None where it was not read."""

    path: str
    kind: str  # file, symlink or special
    bytes: int | None = None
    sha256: str | None = None
    git_blob_sha1: str | None = None
    inventory: InventoryFacts | None = None
    faults: tuple[Fault, ...] = ()

    def digest(self, algorithm: str) -> Digest | None:
        """The digest in that algorithm, where it was taken."""
        value = {SHA256: self.sha256, GIT_BLOB_SHA1: self.git_blob_sha1}[algorithm]
        return Digest(algorithm=algorithm, value=value) if value else None


@dataclass(frozen=True, kw_only=True)
class FileFinding:
    """One file found or expected, with its outcome and a sentence."""

    path: str
    found: FoundFile | None
    pin: FilePin | None
    outcome: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What the files amount to. `model` is the closest pinned model, whether or not it matches."""

    tier: str
    sentence: str
    model: ModelPins | None
    findings: tuple[FileFinding, ...]

    def paths(self, outcome: str) -> tuple[str, ...]:
        """Files with this outcome, sorted."""
        return tuple(finding.path for finding in self.findings if finding.outcome == outcome)


def survey(directory: Path, pins: Pins, *, accept_symlinks: bool = False) -> tuple[FoundFile, ...]:
    """Look at every entry below `directory`, sorted by path; links are followed only when asked for.

    Raises:
        InputError: there is no such directory, or nothing in it.
    """
    if not directory.is_dir():
        raise InputError(f"model directory {directory} does not exist; give the directory that holds config.json")
    paths = sorted(_entries(directory, ""))
    if not paths:
        raise InputError(f"model directory {directory} is empty; nothing checked is not passed")
    return tuple(_look(directory, path, pins, accept_symlinks) for path in paths)


def judge(found: Iterable[FoundFile], pins: Pins, *, accept_symlinks: bool = False) -> Judgement:
    """Compare what was found with the closest pinned model. Pure."""
    files = {item.path: item for item in found}
    model = _closest(files, pins)
    names = sorted({*files, *(pin.path for pin in model.files)} if model else files)
    findings = tuple(_finding(name, files.get(name), model, accept_symlinks) for name in names)
    tier, sentence = _tier(findings, model)
    return Judgement(tier=tier, sentence=sentence, model=model, findings=findings)


def judge_document(document: Mapping[str, Any], pins: Pins) -> Judgement:
    """Judge the files that a stored `identity.json` (accepted by its schema) says were found."""
    there = (item for item in document["files"] if item["kind"] != "absent")
    return judge((_found(item) for item in there), pins, accept_symlinks=document["symlinks"] == "accepted")


def identity_document(run_id: str, judgement: Judgement, *, accept_symlinks: bool = False) -> dict[str, Any]:
    """The document `identity.json`; also for an endpoint without files, judged from nothing."""
    model = judgement.model
    document = {
        "schema": schema.urn("identity"),
        "run_id": run_id,
        "tier": judgement.tier,
        "sentence": judgement.sentence,
        "symlinks": "accepted" if accept_symlinks else "refused",
        "model": {"id": model.id, "revision": model.revision, "tier": model.tier} if model else None,
        "files": [_finding_json(finding) for finding in judgement.findings],
    }
    schema.validate(name="identity", document=document, source="identity.json")
    return document


def role_of(path: str) -> str:
    """What a file of the published layout is for."""
    name = path.rsplit("/", 1)[-1]
    if name.endswith(SAFETENSORS):
        return WEIGHTS
    if name in ("vocab.json", "merges.txt", "tokenizer.json", "tokenizer_config.json"):
        return "tokenizer"
    if name.upper().startswith("README"):
        return "card"
    return "config" if name.endswith(".json") else "other"


def _entries(directory: Path, prefix: str) -> Iterable[str]:
    """Every entry that is no real directory; a link to a directory is an entry, never entered."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _entries(directory / entry.name, f"{prefix}{entry.name}/")
            else:
                yield prefix + entry.name


def _look(directory: Path, path: str, pins: Pins, accept_symlinks: bool) -> FoundFile:
    place = directory / path
    linked = stat.S_ISLNK(place.lstat().st_mode)
    if (linked and not accept_symlinks) or not place.is_file():
        return FoundFile(path=path, kind="symlink" if linked else "special")
    blob = digest_file(place, GIT_BLOB_SHA1).value if GIT_BLOB_SHA1 in pins.algorithms(path) else None
    inventory = take_inventory(place) if path.endswith(SAFETENSORS) else None
    return FoundFile(
        path=path,
        kind="symlink" if linked else "file",
        bytes=place.stat().st_size,
        sha256=digest_file(place, SHA256).value,
        git_blob_sha1=blob,
        inventory=InventoryFacts.of(inventory, pins.prefixes(path)) if inventory else None,
        faults=inventory.faults if inventory else (),
    )


def _closest(files: Mapping[str, FoundFile], pins: Pins) -> ModelPins | None:
    """The model with most matching weights, then most matching files, then most names in common; None without any."""

    def closeness(model: ModelPins) -> tuple[int, int, int]:
        shared = [(pin, files[pin.path]) for pin in model.files if pin.path in files]
        same = [pin for pin, item in shared if item.digest(pin.digest.algorithm) == pin.digest]
        return sum(pin.role == WEIGHTS for pin in same), len(same), len(shared)

    best = max(pins.models, key=closeness, default=None)
    return best if best and closeness(best) > (0, 0, 0) else None


def _finding(path: str, found: FoundFile | None, model: ModelPins | None, accept_symlinks: bool) -> FileFinding:
    pin = model.file(path) if model else None
    outcome, detail = _compare(found, pin, path in (model.unpinned if model else ()), accept_symlinks)
    return FileFinding(path=path, found=found, pin=pin, outcome=outcome, detail=detail)


def _compare(found: FoundFile | None, pin: FilePin | None, known: bool, accept_symlinks: bool) -> tuple[str, str]:
    if found is None:
        return "missing", "pinned, and not there; fetch the model again"
    if found.kind == "special" or (found.kind == "symlink" and not accept_symlinks):
        return "irregular", f"a {found.kind}, not a regular file; copy the content in place"
    if pin is None:
        return ("recorded", "no public digest is known; recorded as found") if known else (
            "extra", "no file of this model; remove it")  # fmt: skip
    differences = _differences(found, pin)
    if differences:
        return "different", "; ".join(differences)
    return "matched", f"{pin.digest.algorithm} and size as pinned ({pin.basis})"


def _differences(found: FoundFile, pin: FilePin) -> tuple[str, ...]:
    problems = []
    if found.bytes != pin.bytes:
        problems.append(f"{found.bytes} bytes instead of {pin.bytes}")
    if found.digest(pin.digest.algorithm) != pin.digest:
        problems.append(f"{pin.digest.algorithm} differs from the pin ({pin.basis})")
    if pin.inventory is not None:
        problems.extend(pin.inventory.differences(found.inventory) if found.inventory else ["no tensors were read"])
    return tuple(problems)


def _tier(findings: tuple[FileFinding, ...], model: ModelPins | None) -> tuple[str, str]:
    if not findings:
        return UNVERIFIED, "No model directory was given, so no weights were hashed: the tier is unverified."
    problems = [f"{name}: {', '.join(paths)}" for name, paths in _against(findings) if paths]
    if model is None:
        return UNVERIFIED, "No pinned model shares a file with this directory: the tier is unverified."
    if problems:
        return UNVERIFIED, f"Closest to {model.id}, but {'; '.join(problems)}: the tier is unverified."
    return model.tier, f"Every pinned file of {model.id} is there, byte for byte: the tier is {model.tier}."


def _against(findings: tuple[FileFinding, ...]) -> tuple[tuple[str, list[str]], ...]:
    """What stands against a tier, by kind."""
    outcomes = ("different", "missing", "extra", "irregular")
    by_outcome = [(name, [item.path for item in findings if item.outcome == name]) for name in outcomes]
    unsound = [item.path for item in findings if item.found and item.found.faults]
    links = [
        item.path for item in findings if item.found and item.found.kind == "symlink" and item.outcome in ACCEPTABLE
    ]
    return (*by_outcome, ("unsound", unsound), ("symbolic links", links))


def _finding_json(finding: FileFinding) -> dict[str, Any]:
    found, pin = finding.found or FoundFile(path=finding.path, kind="absent"), finding.pin
    return {
        "path": finding.path,
        "role": pin.role if pin else role_of(finding.path),
        "bytes": found.bytes,
        "sha256": found.sha256,
        "git_blob_sha1": found.git_blob_sha1,
        "expected": vars(pin.digest) if pin else None,
        "kind": found.kind,
        "outcome": finding.outcome,
        "detail": finding.detail,
        "inventory": found.inventory.to_json() if found.inventory else None,
        "faults": [vars(fault) for fault in found.faults],
    }


def _found(item: Mapping[str, Any]) -> FoundFile:
    return FoundFile(
        path=item["path"],
        kind=item["kind"],
        bytes=item["bytes"],
        sha256=item["sha256"],
        git_blob_sha1=item["git_blob_sha1"],
        inventory=InventoryFacts.from_json(item["inventory"]) if item["inventory"] else None,
        faults=tuple(Fault(**fault) for fault in item["faults"]),
    )
