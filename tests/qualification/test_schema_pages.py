"""The page of schemas is the drawn one, and every example is valid."""

from __future__ import annotations

from pathlib import Path

import pytest

from qualification import schema, schema_pages, strictjson
from qualification.evidence_view import DOCUMENTS
from qualification.tamper import examples

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((REPOSITORY / "schemas" / "examples").glob("*.json"))


def test_the_page_is_the_drawn_one() -> None:
    written = (REPOSITORY / "docs" / "schemas.md").read_text(encoding="utf-8")
    assert written == schema_pages.page(), "run: python -m qualification.schema_pages > docs/schemas.md"


def test_every_schema_has_its_section_and_every_field_its_row() -> None:
    page = schema_pages.page()
    for name in schema.names():
        document = schema.document_schema(name)
        assert f"`{document['$id']}`" in page
        for field in document.get("properties", {}):
            assert f"| `{field}` |" in page


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_example_is_valid_and_canonical(path: Path) -> None:
    document = schema.load(path.stem, path)
    assert path.read_bytes() == strictjson.dumps(document)


def test_each_document_of_a_bundle_has_an_example() -> None:
    wanted = {
        *DOCUMENTS.values(),
        "request-record",
        "telemetry",
        "envelope",
        "statement",
        "verification",
        "review-record",
        "comparison",
        "batch-invariance",
    }
    assert wanted <= {path.stem for path in EXAMPLES}


def test_examples_can_be_made_again(tmp_path: Path) -> None:
    examples.write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} >= {path.name for path in EXAMPLES}
    for path in tmp_path.iterdir():
        schema.load(path.stem, path)


def test_a_reference_to_a_whole_document_leads_to_its_section() -> None:
    page = schema_pages.page()
    assert "[Audio review policy](#audio-review-policy)" in page
    assert "\n## Audio review policy\n" in page
