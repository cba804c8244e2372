"""The writer: once, by schema, with a role; and what sealing leaves behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from qualification import bundle, manifest, paths, schema, strictjson
from qualification.bundle import BundleWriter
from qualification.digest import sha256_file
from qualification.errors import BundleError, SchemaError
from qualification.evidence_view import EvidenceView
from qualification.tamper.good import Good


def test_the_directory_is_new(tmp_path: Path) -> None:
    BundleWriter.create(tmp_path / "new" / "run")
    with pytest.raises(BundleError, match="exists already"):
        BundleWriter.create(tmp_path / "new" / "run")


def test_a_document_is_checked_and_written_once(tmp_path: Path, good_bundle: Good) -> None:
    writer = BundleWriter.create(tmp_path / "run")
    run = EvidenceView(good_bundle.root).run
    with pytest.raises(SchemaError, match="unexpected"):
        writer.document(paths.RUN, {**run, "note": "hello"})
    writer.document(paths.RUN, run)
    with pytest.raises(BundleError, match="written once"):
        writer.document(paths.RUN, run)
    with pytest.raises(BundleError, match="no role is known"):
        writer.raw_bytes("notes.txt", b"hello")
    with pytest.raises(BundleError, match="no plain relative path"):
        writer.raw_bytes("../logs/a.log", b"hello")
    with pytest.raises(BundleError, match="no record to write"):
        writer.records("samples/b1.jsonl", [])
    with pytest.raises(SchemaError, match="names no schema"):
        writer.document("records/own.json", {"a": 1})
    writer.telemetry([])
    assert sorted(path.name for path in writer.root.iterdir()) == [paths.RUN]


def test_the_manifest_is_of_every_file(good_bundle: Good) -> None:
    document = strictjson.load(good_bundle.root / paths.MANIFEST)
    listed = {entry["path"]: entry for entry in document["files"]}
    there = {str(p.relative_to(good_bundle.root)) for p in good_bundle.root.rglob("*") if p.is_file()}
    assert set(listed) == there - {paths.MANIFEST, paths.STATEMENT}
    assert [entry["path"] for entry in document["files"]] == sorted(listed)
    for path, entry in listed.items():
        assert entry["sha256"] == sha256_file(good_bundle.root / path)
        assert entry["bytes"] == (good_bundle.root / path).stat().st_size
        assert entry["role"] == manifest.role_of(path)
    stated = manifest.digests(document)
    assert manifest.digests_of_files(good_bundle.root, stated) == stated


def test_what_cannot_be_sealed(tmp_path: Path) -> None:
    root = tmp_path / "run"
    root.mkdir()
    (root / "run.json").write_bytes(b"{}\n")
    os.mkfifo(root / "pipe")
    with pytest.raises(BundleError, match="pipe: links, special files"):
        manifest.build(root, "run-00000001")
    (root / "pipe").unlink()
    (root / "secret.pem").write_bytes(b"")
    with pytest.raises(BundleError, match=r"secret\.pem: no role is known"):
        manifest.build(root, "run-00000001")


def test_the_statement_covers_the_manifest_too(good_bundle: Good) -> None:
    from qualification import signing

    envelope = schema.load("envelope", good_bundle.root / paths.STATEMENT)
    payload = strictjson.loads(signing.payload_of(envelope), "statement")
    schema.validate("statement", payload, "statement")
    subjects = {item["name"]: item["digest"]["sha256"] for item in payload["subject"]}
    assert subjects[paths.MANIFEST] == sha256_file(good_bundle.root / paths.MANIFEST)
    assert subjects[paths.RUN] == sha256_file(good_bundle.root / paths.RUN)
    assert paths.STATEMENT not in subjects
    assert payload["predicate"]["verdict"] == "qualified"
    with pytest.raises(BundleError, match="written once"):
        bundle.sign_bundle(good_bundle.root, good_bundle.key)
