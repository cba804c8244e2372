"""What is kept of an image: a decision for every component, whatever it is."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from qualification.container.keep import decisions
from qualification.policy import load_policy
from qualification.sbom.document import SbomSubject, sbom_document
from qualification.sbom.parts import Part

SUBJECT = SbomSubject(
    name="assay/engine", version="abc", platform_digest="sha256:" + "a" * 64, epoch=1767225600, licence="Apache-2.0"
)
WAIVED = "base-files"


def _part(name: str, licence: str | None, **more: Any) -> Part:
    return Part(kind="debian", name=name, version="1", purl=None, licence=licence, evidence="a | b", **more)


def _bill() -> dict[str, Any]:
    parts = (
        _part("free", "MIT"),
        _part("unknown", None),
        _part(WAIVED, "GPL-2.0-or-later"),
        _part("inner.so", None, skipped="inside a wheel"),
    )
    document: dict[str, Any] = json.loads(sbom_document(SUBJECT, parts))
    return document


@pytest.mark.parametrize(
    ("name", "decision"),
    [
        ("free", "allowed"),
        ("unknown", "denied"),
        (WAIVED, "waived by the project's maintainers until 2027-12-31"),
        ("inner.so", "not judged by itself: inside a wheel"),
    ],
)
def test_each_component_is_decided(name: str, decision: str) -> None:
    (row,) = [line for line in decisions(_bill(), load_policy()).splitlines() if f"| {name} |" in line]
    assert f"| {decision}" in row
    assert "a \\| b" in row


def test_a_waiver_that_ran_out_is_none() -> None:
    policy = load_policy()
    old = replace(policy, waivers=tuple(replace(waiver, until=date(2025, 12, 31)) for waiver in policy.waivers))
    (row,) = [line for line in decisions(_bill(), old).splitlines() if f"| {WAIVED} |" in line]
    assert "| denied |" in row
