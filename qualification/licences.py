"""Licences of everything that the subject is made of: installed distributions and model files, each decided.

A distribution is `required` when the roots' requirements lead to it (extras and markers evaluated), else merely
`installed` beside it; both are listed. Unknown is never allowed: only a waiver that says who, why and until when turns
a denied or unknown licence into `waived`.
Not covered: Debian packages of an image, and licences of files that a wheel vendors without declaring them.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from qualification import schema, spdx
from qualification.errors import InputError
from qualification.licence_sources import LicenceMapping, Reading, load_mapping, normal_name, read_licence
from qualification.pins import ModelPins

GATES = ("licences.environment", "licences.model")
CARD = "README.md"


@dataclass(frozen=True, kw_only=True)
class Waiver:
    """Somebody's dated decision to go without an allowed licence for one distribution or model file."""

    subject: str
    who: str
    why: str
    until: date


@dataclass(frozen=True, kw_only=True)
class LicenceRules:
    """What the policy allows, on the day of the run."""

    allowed: frozenset[str]
    exceptions: frozenset[str]
    waivers: tuple[Waiver, ...]
    today: date

    @classmethod
    def from_policy(cls, policy: Mapping[str, Any], today: date) -> LicenceRules:
        """The rules in a document that the `policy` schema has accepted; reads the waivers of the licence gates."""
        waivers = [item for item in policy["waivers"] if item["gate"] in GATES and item["subject"]]
        return cls(
            allowed=frozenset(policy["licences"]["allowed"]),
            exceptions=frozenset(policy["licences"]["allowed_exceptions"]),
            waivers=tuple(_waiver(item) for item in waivers),
            today=today,
        )


@dataclass(frozen=True, kw_only=True)
class LicenceRecord:
    """One distribution or model file. `decision`: allowed, denied, unknown or waived; `detail` says why."""

    name: str
    version: str | None
    scope: str
    expression: str | None
    source: str | None
    evidence: str
    decision: str
    detail: str


def subject_path(python: Path) -> tuple[str, ...]:
    """The import path of another interpreter, so that its environment is read and not the harness's own.

    Raises:
        InputError: the interpreter does not run.
    """
    if python == Path(sys.executable):
        return tuple(sys.path)
    command = [str(python), "-I", "-c", "import json, sys; print(json.dumps(sys.path))"]
    try:
        answer = subprocess.run(command, capture_output=True, check=True, timeout=60, text=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise InputError(f"the subject's interpreter {python.name} does not run: {error}") from error
    return tuple(json.loads(answer.stdout))


def distribution_licences(
    path: Sequence[str], roots: Iterable[str], rules: LicenceRules, mapping: LicenceMapping | None = None
) -> tuple[LicenceRecord, ...]:
    """Every distribution on `path`, sorted by name, with the decision on its licence.

    `roots` name the subject's own distributions; what they require and `path` lacks is listed as unknown.
    Without roots every distribution counts as required.
    """
    mapping = mapping or load_mapping()
    installed = _installed(path)
    required = _closure(roots, installed) or set(installed)
    records = [_decide_distribution(item, name in required, rules, mapping) for name, item in installed.items()]
    absent = [_absent(name) for name in required - set(installed)]
    return tuple(sorted((*records, *absent), key=lambda record: record.name))


def model_licences(
    model: Path, pins: ModelPins | None, files: Iterable[str], rules: LicenceRules
) -> tuple[LicenceRecord, ...]:
    """A record for each weight file: the licence in the pins, else the one in the model card's front matter."""
    if pins is not None:
        reading = Reading(expression=spdx.canonical(pins.licence), source="pins", evidence=f"pins of {pins.id}")
        version = pins.revision
    else:
        reading, version = _card_licence(model / CARD), None
    return tuple(_decide(name, version, "model", reading, rules) for name in sorted(files))


def licences_document(
    run_id: str, records: Iterable[LicenceRecord], models: Iterable[LicenceRecord], rules: LicenceRules
) -> dict[str, Any]:
    """The document `licences.json`. Raises `SchemaError` where a record breaks the schema."""
    document = {
        "schema": schema.urn("licences"),
        "run_id": run_id,
        "decided_on": rules.today.isoformat(),
        "distributions": [asdict(record) for record in records],
        "model_files": [asdict(record) for record in models],
    }
    schema.validate(name="licences", document=document, source="licences.json")
    return document


def _waiver(item: Mapping[str, str]) -> Waiver:
    return Waiver(
        subject=normal_name(item["subject"]), who=item["who"], why=item["why"], until=date.fromisoformat(item["until"])
    )


def _installed(path: Sequence[str]) -> dict[str, Distribution]:
    """Distributions by normal name; the first on the path wins, as in an import."""
    found: dict[str, Distribution] = {}
    for item in distributions(path=list(path)):
        name = normal_name(item.metadata["Name"] or "")
        if name:
            found.setdefault(name, item)
    return dict(sorted(found.items()))


def _closure(roots: Iterable[str], installed: Mapping[str, Distribution]) -> set[str]:
    """Normal names that the roots lead to, themselves included."""
    pending = [Requirement(root) for root in roots]
    seen: set[tuple[str, frozenset[str]]] = set()
    while pending:
        requirement = pending.pop()
        key = (normal_name(requirement.name), frozenset(requirement.extras))
        if key not in seen:
            seen.add(key)
            pending.extend(_requirements(installed.get(key[0]), key[1]))
    return {name for name, _ in seen}


def _requirements(item: Distribution | None, extras: frozenset[str]) -> Iterable[Requirement]:
    """Requirements of one distribution whose markers hold here, with any of the wanted extras."""
    for text in (item.requires if item else None) or []:
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            raise InputError(f"an installed distribution has an unreadable requirement {text!r}: {error}") from error
        wanted = ({"extra": extra} for extra in ("", *extras))
        if requirement.marker is None or any(requirement.marker.evaluate(extra) for extra in wanted):
            yield requirement


def _decide_distribution(
    item: Distribution, required: bool, rules: LicenceRules, mapping: LicenceMapping
) -> LicenceRecord:
    scope = "required" if required else "installed"
    return _decide(normal_name(item.metadata["Name"]), item.version, scope, read_licence(item, mapping), rules)


def _absent(name: str) -> LicenceRecord:
    return LicenceRecord(
        name=name, version=None, scope="required", expression=None, source=None, evidence="not installed",
        decision="unknown", detail="required, and not installed; install it or correct the requirement",
    )  # fmt: skip


def _decide(name: str, version: str | None, scope: str, reading: Reading, rules: LicenceRules) -> LicenceRecord:
    decision, detail = _verdict(name, reading.expression, rules)
    return LicenceRecord(
        name=name, version=version, scope=scope, expression=reading.expression, source=reading.source,
        evidence=reading.evidence, decision=decision, detail=detail,
    )  # fmt: skip


def _verdict(name: str, expression: str | None, rules: LicenceRules) -> tuple[str, str]:
    if expression is not None and spdx.is_allowed(expression, rules.allowed, rules.exceptions):
        return "allowed", "the policy allows it"
    waiver = next((item for item in rules.waivers if item.subject == normal_name(name)), None)
    if waiver and rules.today <= waiver.until:
        return "waived", f"waived by {waiver.who} until {waiver.until}: {waiver.why}"
    lapsed = f"; the waiver of {waiver.who} ended on {waiver.until}" if waiver else ""
    if expression is None:
        return "unknown", f"no text names one SPDX licence; add evidence to the licence mapping{lapsed}"
    return "denied", f"the policy does not allow {expression}{lapsed}"


def _card_licence(card: Path) -> Reading:
    """The `license:` line of a model card's front matter; hubs write SPDX identifiers in lower case."""
    try:
        text = card.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return Reading(expression=None, source=None, evidence=f"no readable {CARD}, and no pins match")
    front = re.match(r"---\n(.*?)\n---", text, re.DOTALL)
    line = re.search(r"(?m)^license:\s*['\"]?([A-Za-z0-9.+-]+)", front[1]) if front else None
    if line is None:
        return Reading(expression=None, source=None, evidence=f"{CARD} has no license line in its front matter")
    return Reading(expression=spdx.canonical(line[1]), source="model-card", evidence=line[0].strip())
