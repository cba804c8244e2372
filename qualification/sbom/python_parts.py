"""Python distributions of an image, from their metadata, and the shared libraries that wheels bring along.

The licence of a distribution is read by `licence_sources`, the same code that reads a live environment. A library
inside a wheel has no metadata of its own: it is listed by hash and marked as covered by its wheel, never left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from qualification.container.image_tree import ImageTree
from qualification.container.layout import SITE
from qualification.digest import sha256_bytes
from qualification.licence_sources import LicenceMapping, load_mapping, normal_name, read_licence
from qualification.sbom.parts import Part

_VENDORED = re.compile(r"(?:^|/)([A-Za-z0-9_.-]+\.libs|torch/lib|_soundfile_data|nvidia/[^/]+/lib)/[^/]+\.so[^/]*$")


def python_parts(
    tree: ImageTree, scratch: Path, hashes: Mapping[str, str], mapping: LicenceMapping | None = None
) -> Iterator[Part]:
    """Every distribution, then every vendored library.

    Args:
        scratch: an empty directory for a copy of the metadata.
        hashes: SHA-256 of the wheel by normal name, where it is known.
    """
    site = str(SITE).strip("/")
    metadata = [path for path in tree.files(site) if ".dist-info/" in path]
    tree.extract(metadata, scratch)
    known = load_mapping() if mapping is None else mapping
    found = {normal_name(item.metadata["Name"]): item for item in distributions(path=[str(scratch / site)])}
    for name in sorted(found):
        yield _part(found[name], name, frozenset(found), hashes.get(name), known)
    for path in tree.files(site):
        if _VENDORED.search(path):
            yield _vendored(path.removeprefix(f"{site}/"), sha256_bytes(tree.read(path)))


def _part(item: Distribution, name: str, present: frozenset[str], sha256: str | None, mapping: LicenceMapping) -> Part:
    reading = read_licence(item, mapping)
    return Part(
        kind="python",
        name=name,
        version=item.version,
        purl=f"pkg:pypi/{name}@{item.version.replace('+', '%2B')}",
        licence=reading.expression,
        evidence=f"{reading.source}: {reading.evidence}" if reading.source else reading.evidence,
        sha256=sha256,
        requires=tuple(sorted(_requires(item) & present)),
    )


def _requires(item: Distribution) -> frozenset[str]:
    names = set()
    for text in item.requires or []:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if requirement.marker is None or requirement.marker.evaluate({"python_version": "3.11", "extra": ""}):
            names.add(normal_name(requirement.name))
    return frozenset(names)


def _vendored(path: str, sha256: str) -> Part:
    wheel = path.split("/")[0].removesuffix(".libs")
    return Part(
        kind="vendored",
        name=path,
        version=None,
        purl=None,
        licence=None,
        evidence="no metadata of its own",
        sha256=sha256,
        skipped=f"a library inside the wheel of {wheel}; the notices hold what that wheel says of it",
    )
