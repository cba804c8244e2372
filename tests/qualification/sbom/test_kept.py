"""The documents that lie in `sbom/`: valid, named after what they speak of, and complete in threes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qualification.paths import schema_directory
from qualification.sbom.document import faults

SBOM = schema_directory().parent / "sbom"
SUFFIXES = {"cdx.json", "licences.md", "NOTICES.txt"}
BILLS = sorted(SBOM.glob("*.cdx.json"))


@pytest.mark.parametrize("path", BILLS, ids=lambda path: path.name[:12])
def test_a_kept_bill_is_valid_and_about_the_digest_in_its_name(path: Path) -> None:
    content = path.read_bytes()
    assert faults(content) == ()
    (digest,) = json.loads(content)["metadata"]["component"]["hashes"]
    assert path.name == f"{digest['content']}.cdx.json"


@pytest.mark.parametrize("path", BILLS, ids=lambda path: path.name[:12])
def test_each_component_has_its_decision_and_none_is_denied(path: Path) -> None:
    table = path.with_name(path.name.replace("cdx.json", "licences.md")).read_text()
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == len(json.loads(path.read_bytes())["components"])
    assert not [row for row in rows if "| denied |" in row]


def test_documents_lie_there_in_threes() -> None:
    kept = {path.name for path in SBOM.iterdir()} - {"README.md"}
    assert kept == {f"{bill.name.partition('.')[0]}.{suffix}" for bill in BILLS for suffix in SUFFIXES}
