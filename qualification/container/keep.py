"""What of an image is kept for readers who will not build it: bill of materials, notices and licence decisions.

Each file is named after the platform digest that it speaks of. All are pure functions of the image and the policy; the day
of a decision is the image's own. Not covered: whether a gate passes (`gates.sbom_licences`), on the day of a run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final

from qualification import spdx
from qualification.container import layout, oci_store
from qualification.container.image_tree import ImageTree
from qualification.policy import Policy
from qualification.sbom.document import PROPERTY

GATE: Final = "sbom.licences"


def keep(image: Path, bill: bytes, policy: Policy, target: Path) -> tuple[Path, ...]:
    """Write the three files of the image layout `image` to `target`; returns their paths."""
    stored = oci_store.load(image)
    name = stored.manifest.digest.removeprefix("sha256:")
    with ImageTree(stored.layers) as tree:
        notices = tree.read(str(layout.NOTICES))
    target.mkdir(parents=True, exist_ok=True)
    contents = {"cdx.json": bill, "licences.md": decisions(json.loads(bill), policy).encode(), "NOTICES.txt": notices}
    for suffix, content in contents.items():
        (target / f"{name}.{suffix}").write_bytes(content)
    return tuple(target / f"{name}.{suffix}" for suffix in contents)


def decisions(bill: Mapping[str, Any], policy: Policy) -> str:
    """One table row for each component of a CycloneDX document: its licence, the decision and what it rests on."""
    day = date.fromisoformat(bill["metadata"]["timestamp"][:10])
    head = (
        f"# Licences of {bill['metadata']['component']['purl']}\n\n"
        f"Decided under {policy.name} {policy.version} for {day}.\n\n"
        "| kind | component | version | licence | decision | rests on |\n|---|---|---|---|---|---|\n"
    )
    return head + "\n".join(_rows(bill, policy, day)) + "\n"


def _rows(bill: Mapping[str, Any], policy: Policy, day: date) -> Iterator[str]:
    for component in bill["components"]:
        facts = {item["name"].removeprefix(PROPERTY): item["value"] for item in component["properties"]}
        licence = next((item["expression"] for item in component.get("licenses", ())), None)
        cells = (
            facts["kind"],
            component["name"],
            component.get("version", ""),
            licence or "none",
            _decision(component["name"], licence, facts.get("skipped"), policy, day),
            facts["licence-evidence"],
        )
        yield f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in cells)} |"


def _decision(name: str, licence: str | None, skipped: str | None, policy: Policy, day: date) -> str:
    if skipped is not None:
        return f"not judged by itself: {skipped}"
    if licence is not None and spdx.is_allowed(licence, policy.licences_allowed, policy.licence_exceptions_allowed):
        return "allowed"
    for waiver in policy.waivers:
        if waiver.gate == GATE and waiver.subject == name and waiver.holds(day):
            return f"waived by {waiver.who} until {waiver.until}: {waiver.why}"
    return "denied"
