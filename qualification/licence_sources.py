"""Which licence an installed distribution has, and the exact text that says so.

Asked in this order: PEP 639 `License-Expression`; the curated mapping, whose entry counts only while the text that it
quotes is still found in the distribution; the old `License` field, where it is an SPDX expression or a known name;
classifiers, where they name one licence without doubt. No guess follows: what none of them says is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path, PurePosixPath
from typing import Any

from qualification import schema, spdx, strictjson
from qualification.paths import data_file

MAPPING = "licence-mapping.json"
MAX_EVIDENCE = 200  # characters of quoted text kept


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A licence and where it was read. `expression` None: unknown, and `evidence` says what was found instead."""

    expression: str | None
    source: str | None
    evidence: str


@dataclass(frozen=True, kw_only=True)
class Curated:
    """A mapping entry: `expression` holds while `text` is found in `where`, the name of a metadata field, a licence
    file or a top-level module."""

    name: str
    expression: str
    where: str
    text: str
    why: str


@dataclass(frozen=True, kw_only=True)
class LicenceMapping:
    """Texts that stand for an SPDX expression: per distribution, in the `License` field, and as classifiers."""

    distributions: Mapping[str, Curated]
    fields: Mapping[str, str]
    classifiers: Mapping[str, str]


def load_mapping() -> LicenceMapping:
    """The mapping that ships with the package. Raises `InputError` where it is malformed."""
    document = strictjson.load(data_file(MAPPING))
    schema.validate(name="licence-mapping", document=document, source=MAPPING)
    return LicenceMapping(
        distributions={normal_name(item["name"]): Curated(**item) for item in document["distributions"]},
        fields={item["text"]: item["expression"] for item in document["fields"]},
        classifiers={item["text"]: item["expression"] for item in document["classifiers"]},
    )


def normal_name(name: str) -> str:
    """A distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_licence(distribution: Distribution, mapping: LicenceMapping) -> Reading:
    """The licence of one installed distribution; never raises for odd metadata, which reads as unknown."""
    metadata: Any = distribution.metadata
    declared = metadata.get("License-Expression")
    if declared:
        return _reading("license-expression", declared, declared)
    curated = mapping.distributions.get(normal_name(metadata.get("Name") or ""))
    if curated and _quotes(distribution, curated):
        return _reading("curated", curated.expression, f"{curated.where}: {curated.text}")
    field = (metadata.get("License") or "").strip()
    classifiers = [item for item in metadata.get_all("Classifier") or [] if item.startswith("License ::")]
    return _from_field(field, mapping) or _from_classifiers(classifiers, mapping) or _unknown(field, classifiers)


def _reading(source: str, expression: str, evidence: str) -> Reading:
    canonical = spdx.canonical(expression)
    if canonical is None:
        return Reading(expression=None, source=None, evidence=f"{source} is no SPDX expression: {_short(evidence)}")
    return Reading(expression=canonical, source=source, evidence=_short(evidence))


def _quotes(distribution: Distribution, curated: Curated) -> bool:
    """Whether the distribution still holds the text that the curated entry quotes."""
    metadata: Any = distribution.metadata
    if curated.where in ("License", "Classifier"):
        return any(curated.text in value for value in metadata.get_all(curated.where) or [])
    files = [file for file in distribution.files or [] if _is_own_file(file, curated.where)]
    return any(curated.text in (_text(distribution, file) or "") for file in files)


def _is_own_file(path: PurePosixPath, name: str) -> bool:
    """A file of the distribution itself: in its metadata directory or a top-level module, never a vendored one."""
    inside = path.parts[0].endswith((".dist-info", ".egg-info")) if path.parts else False
    return path.name == name and (inside or len(path.parts) == 1)


def _text(distribution: Distribution, file: Any) -> str | None:
    try:
        return Path(str(distribution.locate_file(file))).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _from_field(field: str, mapping: LicenceMapping) -> Reading | None:
    expression = mapping.fields.get(field) or (spdx.canonical(field) if field and "\n" not in field else None)
    return _reading("license-field", expression, field) if expression else None


def _from_classifiers(classifiers: list[str], mapping: LicenceMapping) -> Reading | None:
    """One classifier is one licence; several do not say whether they are joined by AND or OR."""
    if len(classifiers) != 1 or classifiers[0] not in mapping.classifiers:
        return None
    return _reading("classifier", mapping.classifiers[classifiers[0]], classifiers[0])


def _unknown(field: str, classifiers: list[str]) -> Reading:
    found = "; ".join(item for item in (field.split("\n")[0], *classifiers) if item)
    return Reading(expression=None, source=None, evidence=_short(found or "no licence metadata"))


def _short(text: str) -> str:
    return text if len(text) <= MAX_EVIDENCE else text[: MAX_EVIDENCE - 1] + "…"
