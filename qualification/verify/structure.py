"""First question: are exactly the sealed files there, unaltered?

1. The bundle is a directory that can be walked, of regular files in real directories.
2. `manifest.json` is there, strict and of its schema.
3. Its entries are sorted by path, each path once, each with the role that the path has by rule.
4. Files and entries are the same set, apart from the manifest, the statement over it and layers (see `layers`).
5. Each file has the size and the SHA-256 of its entry.
6. Every document that a bundle cannot do without is among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from qualification import manifest, paths
from qualification.digest import sha256_file
from qualification.errors import BundleError, QualificationError
from qualification.evidence_view import EvidenceView
from qualification.verify.findings import Finding

REQUIRED: Final = (
    paths.RUN,
    paths.POLICY,
    paths.PINS,
    paths.WORKLOAD,
    paths.IDENTITY,
    paths.LICENCES,
    paths.ENVIRONMENT,
    paths.PHASES,
    paths.GATES,
    paths.SUMMARY,
)


def check(evidence: EvidenceView) -> Iterator[Finding]:
    """Findings of the six steps; the later ones are left out where there is no manifest to compare with."""
    try:
        walked = evidence.walked  # 1
    except OSError as error:
        yield Finding(code="bundle.unreadable", file=".", detail=f"cannot be walked: {type(error).__name__}")
        return
    for path in walked.irregular:
        yield Finding(code="file.irregular", file=path, detail="a link, a special file or an empty directory")
    yield from _incomplete(walked.files)  # 6
    if paths.MANIFEST not in walked.files:  # 2
        yield Finding(code="manifest.missing", file=paths.MANIFEST, detail="no manifest: the evidence was never sealed")
        return
    try:
        document = evidence.document(paths.MANIFEST)
    except QualificationError as error:
        yield Finding(code="manifest.malformed", file=paths.MANIFEST, detail=str(error))
        return
    yield from _entries(document)  # 3
    yield from _presence(document, frozenset(walked.files))  # 4
    yield from _content(document, evidence)  # 5


def _incomplete(files: tuple[str, ...]) -> Iterator[Finding]:
    for path in REQUIRED:
        if path not in files:
            yield Finding(code="bundle.incomplete", file=path, detail="a bundle cannot do without this document")
    if not any(path.startswith(f"{paths.SAMPLES_DIRECTORY}/") for path in files):
        yield Finding(code="bundle.incomplete", file=paths.SAMPLES_DIRECTORY, detail="no raw record of any request")


def _entries(document: Mapping[str, Any]) -> Iterator[Finding]:
    names = [entry["path"] for entry in document["files"]]
    if any(left >= right for left, right in pairwise(names)):
        yield Finding(code="manifest.order", file=paths.MANIFEST, detail="paths are not sorted, or one appears twice")
    for entry in document["files"]:
        problem = _role_problem(entry)
        if problem:
            yield Finding(code="manifest.role", file=entry["path"], detail=problem)


def _role_problem(entry: Mapping[str, Any]) -> str | None:
    try:
        role = manifest.role_of(entry["path"])
    except BundleError as error:
        return str(error)
    return None if role == entry["role"] else f"called {entry['role']}, by rule it is {role}"


def _presence(document: Mapping[str, Any], files: frozenset[str]) -> Iterator[Finding]:
    listed = {entry["path"] for entry in document["files"]}
    for path in sorted(listed - files):
        yield Finding(code="file.missing", file=path, detail="listed in the manifest and not there")
    for path in sorted(path for path in files - listed if not manifest.is_outside(path)):
        yield Finding(code="file.extra", file=path, detail="there and not listed in the manifest")
    for path in sorted(listed & manifest.OUTSIDE):
        yield Finding(code="manifest.role", file=path, detail="a manifest cannot list itself or the statement over it")


def _content(document: Mapping[str, Any], evidence: EvidenceView) -> Iterator[Finding]:
    for entry in document["files"]:
        try:
            place = paths.locate(evidence.root, entry["path"])
        except BundleError:
            continue  # said above: missing or irregular
        size = place.stat().st_size
        if size != entry["bytes"]:
            yield Finding(
                code="file.size", file=entry["path"], detail=f"{size} bytes, the manifest says {entry['bytes']}"
            )
        elif sha256_file(place) != entry["sha256"]:
            yield Finding(code="file.digest", file=entry["path"], detail="the content is not what was sealed")
