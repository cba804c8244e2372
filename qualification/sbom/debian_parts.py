"""Debian packages of an image, from the control paragraphs that it keeps, with the licence of what each ships.

A machine-readable copyright file names licences per source file; what ends in a library is a smaller set. So the
mapping (`debian-licences.json`) names one expression per source package and quotes the words that carry it; an entry
counts only while those words are still in the copyright file. Without an entry: the single licence of a
machine-readable file, or unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from urllib.parse import quote

from qualification import schema, spdx
from qualification.container.image_tree import ImageTree
from qualification.container.layout import COPYRIGHTS, PACKAGES
from qualification.paths import data_file
from qualification.sbom.parts import Part

MAPPING = "debian-licences.json"
_MACHINE_READABLE = re.compile(
    r"^Format: https?://www\.debian\.org/doc/packaging-manuals/copyright-format/1\.0/?\s*$", re.MULTILINE
)
_SHORT_NAMES = {
    "Expat": "MIT",
    "BSD-3-clause": "BSD-3-Clause",
    "LGPL-2.1+": "LGPL-2.1-or-later",
    "GPL-2+": "GPL-2.0-or-later",
}


@dataclass(frozen=True, kw_only=True)
class CuratedLicence:
    """What a source package's binaries are under, and the words of its copyright file that say so."""

    source: str
    expression: str
    text: str
    why: str


def load_mapping() -> Mapping[str, CuratedLicence]:
    """Entries by source package. Raises `InputError` where the file is malformed."""
    document = schema.load("debian-licences", data_file(MAPPING))
    return {item["source"]: CuratedLicence(**item) for item in document["packages"]}


def debian_parts(tree: ImageTree, mapping: Mapping[str, CuratedLicence] | None = None) -> Iterator[Part]:
    """Every package of the image."""
    curated = load_mapping() if mapping is None else mapping
    for path in tree.files(str(PACKAGES)):
        control = Parser().parsestr(tree.read(path).decode("utf-8", "replace"))
        yield _part(tree, control, curated)


def _part(tree: ImageTree, control: Message[str, str], curated: Mapping[str, CuratedLicence]) -> Part:
    name, version, architecture = control["Package"], control["Version"], control["Architecture"]
    source = (control.get("Source") or name).split(" ")[0]
    licence, evidence = licence_of(_copyright(tree, name), curated.get(source))
    return Part(
        kind="debian",
        name=name,
        version=version,
        purl=f"pkg:deb/debian/{quote(name, safe='')}@{quote(version, safe='')}?arch={architecture}&distro=debian-12",
        licence=licence,
        evidence=evidence,
        sha256=control.get("X-Archive-SHA256"),
        requires=_requires(control),
        facts=(("source", source),),
    )


def licence_of(text: str, curated: CuratedLicence | None) -> tuple[str | None, str]:
    """Expression and evidence from a copyright file."""
    if curated is not None:
        if " ".join(curated.text.split()) in " ".join(text.split()):
            return curated.expression, f"copyright: {curated.text}"
        return None, f"the copyright file no longer says: {curated.text}"
    if not _MACHINE_READABLE.search(text):
        return None, "the copyright file is not machine-readable, and the mapping has no entry"
    names = sorted({match.strip() for match in re.findall(r"^License: *(\S.*)$", text, re.MULTILINE)})
    expressions = {spdx.canonical(_SHORT_NAMES.get(name, name)) for name in names}
    if len(expressions) == 1 and None not in expressions:
        return expressions.pop(), f"copyright: License: {names[0]}"
    return None, f"the copyright file names several licences: {', '.join(names)[:200]}"


def _copyright(tree: ImageTree, package: str) -> str:
    try:
        return tree.read(f"{COPYRIGHTS}/{package}/copyright").decode("utf-8", "replace")
    except KeyError:
        return ""


def _requires(control: Message[str, str]) -> tuple[str, ...]:
    listed = ", ".join(control.get(field) or "" for field in ("Pre-Depends", "Depends"))
    alternatives = (item.split("|")[0].strip() for item in listed.split(","))
    return tuple(sorted({item.split(" ")[0].split(":")[0] for item in alternatives if item}))
