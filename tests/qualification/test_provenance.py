"""Provenance ties the platform digest to its inputs, and gives nothing away."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from qualification import provenance, schema
from qualification.errors import InputError, SchemaError

HEX = "a" * 64
REPORT: dict[str, Any] = {
    "variant": "cpu",
    "source": {"commit": "c" * 40, "dirty": False, "changed": 0, "epoch": 5},
    "base": {"name": "assay/base", "digest": f"sha256:{HEX}", "made_by": "mmdebstrap"},
    "arguments": [
        {"name": "SOURCE", "value": "urn:assay:source"},
        {"name": "MODEL_ID", "value": "m/v"},
        {"name": "MODEL_DIGEST", "value": f"sha256:{HEX}"},
    ],
    "locks": [{"name": "runtime-cpu.txt", "sha256": HEX}],
    "dockerfile_sha256": HEX,
    "pins_sha256": HEX,
    "wheels": [{"name": "torch", "version": "2+cpu", "sha256": HEX}],
    "digests": {"index": f"sha256:{HEX}", "platform": f"sha256:{'b' * 64}", "config": f"sha256:{HEX}"},
    "engine": {"version": "20"},
}


def _statement(**changes: Any) -> dict[str, Any]:
    return provenance.statement(copy.deepcopy(REPORT) | changes, harness="1", began=1.0, ended=2.5)


def test_the_subject_is_the_platform_digest() -> None:
    assert _statement()["subject"] == [{"name": "assay/engine", "digest": {"sha256": "b" * 64}}]


def test_every_input_is_named_by_digest() -> None:
    found = {
        item["name"]: item["digest"] for item in _statement()["predicate"]["buildDefinition"]["resolvedDependencies"]
    }
    assert found["source"] == {"gitCommit": "c" * 40}
    assert {"base", "model", "Dockerfile", "pins.json", "locks/runtime-cpu.txt", "torch"} <= set(found)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("/home/somebody/src", "a private path"),
        ("file:/root/x", "a private path"),
        ("https://user:pass@host/x", "credentials in a URL"),
        ("-----BEGIN PRIVATE KEY-----", "a private key"),
        ("ghp_" + "a1" * 15, "a token"),
        ("password=hunter22", "a secret by name"),
    ],
)
def test_what_must_stay_private_is_refused(value: str, kind: str) -> None:
    arguments = [*REPORT["arguments"], {"name": "EXTRA", "value": value}]
    assert kind in provenance.leaks({"x": value})
    with pytest.raises(InputError, match=kind):
        _statement(arguments=arguments)


def test_a_clean_document_has_no_leaks() -> None:
    assert provenance.leaks(_statement()) == ()


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(SchemaError):
        schema.validate("provenance", _statement() | {"more": 1}, "provenance.json")
