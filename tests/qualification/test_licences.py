"""Licences are read from stated sources, decided by the policy, and unknown is never allowed."""

from __future__ import annotations

import sys
from datetime import date
from email.message import Message
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest

from qualification.errors import InputError, SchemaError
from qualification.licence_sources import load_mapping
from qualification.licences import (
    LicenceRecord,
    LicenceRules,
    Waiver,
    distribution_licences,
    licences_document,
    model_licences,
    subject_path,
)
from qualification.pins import load_pins

TODAY = date(2026, 6, 1)
RUN_ID = "20260101T000000Z-test"
BSD = "License :: OSI Approved :: BSD License"
MIT = "License :: OSI Approved :: MIT License"
APACHE = "License :: OSI Approved :: Apache Software License"


def _rules(*waivers: Waiver, allowed: tuple[str, ...] = ("MIT", "Apache-2.0", "BSD-3-Clause")) -> LicenceRules:
    return LicenceRules(allowed=frozenset(allowed), exceptions=frozenset(), waivers=waivers, today=TODAY)


def _install(site: Path, name: str, fields: dict[str, Any], files: dict[str, str] | None = None) -> None:
    """Lay out an installed distribution as a wheel would."""
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    message = Message()
    message["Metadata-Version"], message["Name"], message["Version"] = "2.4", name, "1.0"
    for key, value in fields.items():
        for item in value if isinstance(value, list) else [value]:
            message[key] = item
    (info / "METADATA").write_text(str(message))
    for file, text in (files or {}).items():
        (info / file).write_text(text)
    names = [f"{info.name}/{file}" for file in ("METADATA", "RECORD", *(files or {}))]
    (info / "RECORD").write_text("".join(f"{item},,\n" for item in names))


def _one(
    site: Path, fields: dict[str, Any], *, name: str = "thing", files: dict[str, str] | None = None, **rules: Any
) -> LicenceRecord:
    _install(site, name, fields, files)
    (record,) = distribution_licences([str(site)], (), rules.get("rules") or _rules())
    return record


@pytest.mark.parametrize(
    ("fields", "expression", "source"),
    [
        ({"License-Expression": "mit"}, "MIT", "license-expression"),
        ({"License-Expression": "MIT", "License": "GPL-3.0-only"}, "MIT", "license-expression"),
        ({"License": "Apache-2.0"}, "Apache-2.0", "license-field"),
        ({"License": "MIT License"}, "MIT", "license-field"),
        ({"Classifier": [MIT]}, "MIT", "classifier"),
        ({"Classifier": [BSD]}, None, None),
        ({"Classifier": [APACHE]}, None, None),
        ({"Classifier": [MIT, BSD]}, None, None),
        ({"Classifier": [MIT, "License :: OSI Approved :: ISC License (ISCL)"]}, None, None),
        ({"License": "BSD"}, None, None),
        ({"License": "do what you like"}, None, None),
        ({"License-Expression": "do what you like", "License": "MIT"}, None, None),
        ({}, None, None),
    ],
)
def test_sources(tmp_path: Path, fields: dict[str, Any], expression: str | None, source: str | None) -> None:
    record = _one(tmp_path, fields)
    assert (record.expression, record.source) == (expression, source)
    assert record.decision == ("allowed" if expression else "unknown")


def test_a_curated_entry_holds_while_its_text_is_found(tmp_path: Path) -> None:
    text = "3.  Neither the name of the copyright holder nor the names of its contributors"
    record = _one(tmp_path, {"Classifier": [BSD]}, name="Jinja2", files={"LICENSE.txt": text})
    assert (record.name, record.expression, record.source) == ("jinja2", "BSD-3-Clause", "curated")


def test_a_curated_entry_without_its_text_is_unknown(tmp_path: Path) -> None:
    record = _one(tmp_path, {"Classifier": [BSD]}, name="jinja2", files={"LICENSE.txt": "all rights reserved"})
    assert (record.expression, record.decision) == (None, "unknown")


def test_denied(tmp_path: Path) -> None:
    record = _one(tmp_path, {"License-Expression": "GPL-3.0-only"})
    assert (record.decision, record.detail) == ("denied", "the policy does not allow GPL-3.0-only")


@pytest.mark.parametrize(
    ("fields", "until", "decision"),
    [
        ({"License-Expression": "GPL-3.0-only"}, TODAY, "waived"),
        ({}, TODAY, "waived"),
        ({"License-Expression": "GPL-3.0-only"}, date(2026, 5, 31), "denied"),
        ({}, date(2026, 5, 31), "unknown"),
        ({"License-Expression": "MIT"}, TODAY, "allowed"),
    ],
)
def test_waivers_are_dated(tmp_path: Path, fields: dict[str, Any], until: date, decision: str) -> None:
    waiver = Waiver(subject="thing", who="A. Person", why="agreed with the legal department", until=until)
    record = _one(tmp_path, fields, name="Thing", rules=_rules(waiver))
    assert record.decision == decision
    assert ("A. Person" in record.detail) == (decision != "allowed")


def test_a_waiver_reaches_its_subject_only(tmp_path: Path) -> None:
    waiver = Waiver(subject="other", who="A. Person", why="agreed with the legal department", until=TODAY)
    assert _one(tmp_path, {}, rules=_rules(waiver)).decision == "unknown"


def test_scope_follows_requirements_extras_and_markers(tmp_path: Path) -> None:
    requires = ["Middle[fast]>=1", "never; python_version < '3'", "extra-only; extra == 'x'"]
    _install(tmp_path, "root", {"License-Expression": "MIT", "Requires-Dist": requires})
    _install(tmp_path, "middle", {"License-Expression": "MIT", "Requires-Dist": ["leaf; extra == 'fast'", "root"]})
    for name in ("leaf", "never", "extra-only", "stranger"):
        _install(tmp_path, name, {"License-Expression": "MIT"})
    records = distribution_licences([str(tmp_path)], ["root"], _rules())
    assert [record.name for record in records if record.scope == "required"] == ["leaf", "middle", "root"]
    assert [record.name for record in records if record.scope == "installed"] == ["extra-only", "never", "stranger"]


def test_a_requirement_that_is_not_installed_is_unknown(tmp_path: Path) -> None:
    _install(tmp_path, "root", {"License-Expression": "MIT", "Requires-Dist": ["ghost"]})
    records = {record.name: record for record in distribution_licences([str(tmp_path)], ["root"], _rules())}
    assert (records["ghost"].decision, records["ghost"].version) == ("unknown", None)


def test_an_unreadable_requirement_is_refused(tmp_path: Path) -> None:
    _install(tmp_path, "root", {"License-Expression": "MIT", "Requires-Dist": ["== what"]})
    with pytest.raises(InputError, match="unreadable requirement"):
        distribution_licences([str(tmp_path)], ["root"], _rules())


def test_another_interpreter_is_asked_for_its_path() -> None:
    link = Path(sys.prefix) / "bin" / "python"
    assert [item for item in subject_path(link) if "site-packages" in item]
    with pytest.raises(InputError, match="does not run"):
        subject_path(Path("/nonexistent/python"))


def test_curated_entries_still_quote_what_is_installed() -> None:
    """Every curated distribution that this environment has must resolve; a stale quotation fails here."""
    mapping = load_mapping()
    here = {item.metadata["Name"].lower().replace("_", "-") for item in distributions()}
    known = set(mapping.distributions) & here
    records = distribution_licences(sys.path, (), _rules(), mapping)
    sources = {record.name: record.source for record in records if record.name in known}
    assert {name for name, source in sources.items() if source is None} == set()


@pytest.mark.parametrize(
    ("card", "expression", "decision"),
    [
        ("---\nlicense: apache-2.0\nlanguage: en\n---\n# Card\n", "Apache-2.0", "allowed"),
        ("---\nlicense: 'mit'\n---\n", "MIT", "allowed"),
        ("---\nlicense: other\n---\n", None, "unknown"),
        ("# Card\nlicense: mit\n", None, "unknown"),
        (None, None, "unknown"),
    ],
)
def test_a_model_card_names_the_licence(
    tmp_path: Path, card: str | None, expression: str | None, decision: str
) -> None:
    if card is not None:
        (tmp_path / "README.md").write_text(card)
    (record,) = model_licences(tmp_path, None, ["model.safetensors"], _rules())
    assert (record.expression, record.decision, record.scope) == (expression, decision, "model")


def test_pins_name_the_licence_of_a_known_model(tmp_path: Path) -> None:
    (release,) = load_pins().of_tier("release")
    (record,) = model_licences(tmp_path, release, ["model.safetensors"], _rules())
    assert (record.expression, record.source, record.version) == ("Apache-2.0", "pins", release.revision)


def test_the_document_has_its_schema(tmp_path: Path) -> None:
    record = _one(tmp_path, {"License-Expression": "MIT"})
    document = licences_document(RUN_ID, [record], (), _rules())
    assert document["distributions"][0]["expression"] == "MIT"
    with pytest.raises(SchemaError):
        licences_document(RUN_ID, [LicenceRecord(**{**vars(record), "expression": None})], (), _rules())
