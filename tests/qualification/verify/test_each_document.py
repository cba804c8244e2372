"""What holds for every document holds for each: none may be missing, belong to another run, or claim another tier."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from qualification import paths, schema, strictjson
from qualification.evidence_view import DOCUMENTS, EvidenceView
from qualification.tamper import bench
from qualification.tamper.bench import Bench
from qualification.tamper.good import Good
from qualification.verify import binding, structure

OTHER = "another-run-0001"
IMAGE = {"index": None, "platform": "sha256:" + "a" * 64, "config": "sha256:" + "b" * 64}
NAMING = sorted(
    path
    for path, name in DOCUMENTS.items()
    if path != paths.RUN and "run_id" in schema.document_schema(name).get("properties", {})
)


@pytest.fixture
def copy(good_bundle: Good, tmp_path: Path) -> Bench:
    return bench.copy(good_bundle, tmp_path / "bundle")


def _bound(copy: Bench) -> list[tuple[str, str, str]]:
    found = binding.check(EvidenceView(copy.root), copy.good.trust)
    return [(finding.code, finding.file, finding.detail) for finding in found]


def test_more_than_a_handful_of_documents_name_the_run() -> None:
    assert len(NAMING) >= 7


@pytest.mark.parametrize("path", NAMING)
def test_each_document_that_names_a_run_names_this_one(path: str, copy: Bench) -> None:
    run_id = copy.read(paths.RUN)["run_id"]
    copy.edit(path, lambda document: document.update(run_id=OTHER))
    assert _bound(copy) == [("binding.run", path, f"belongs to run {OTHER}, not to {run_id}")]


def test_each_record_belongs_to_the_run(copy: Bench) -> None:
    records = [path for path in EvidenceView(copy.root).walked.files if path.startswith("records/")]
    assert records
    run_id = copy.read(paths.RUN)["run_id"]
    for path in records:
        copy.edit(path, lambda document: document.update(run_id=OTHER))
    assert _bound(copy) == [("binding.run", path, f"belongs to run {OTHER}, not to {run_id}") for path in records]


def test_a_record_of_a_foreign_standard_names_no_run(copy: Bench) -> None:
    copy.replace("records/foreign.json", b"{}\n")
    assert _bound(copy) == []


@pytest.mark.parametrize("path", structure.REQUIRED)
def test_a_bundle_does_without_no_document(path: str, copy: Bench) -> None:
    (copy.root / path).unlink()
    found = [(finding.code, finding.file) for finding in structure.check(EvidenceView(copy.root))]
    assert found == [("bundle.incomplete", path), ("file.missing", path)]


def test_what_is_required_is_every_document_that_is_written_always() -> None:
    assert set(structure.REQUIRED) == DOCUMENTS.keys() - {paths.MANIFEST}


def test_a_bundle_does_not_do_without_records(copy: Bench) -> None:
    shutil.rmtree(copy.root / paths.SAMPLES_DIRECTORY)
    copy.edit(paths.MANIFEST, _without_samples)
    found = [(finding.code, finding.file, finding.detail) for finding in structure.check(EvidenceView(copy.root))]
    assert found == [("bundle.incomplete", "samples", "no raw record of any request")]


def _without_samples(document: dict[str, Any]) -> None:
    document["files"] = [entry for entry in document["files"] if not entry["path"].startswith("samples/")]


@pytest.mark.parametrize("path", [paths.RUN, paths.IDENTITY, paths.SUMMARY])
def test_each_document_that_claims_a_tier_claims_the_derived_one(path: str, copy: Bench) -> None:
    copy.edit(path, lambda document: document.update(tier="release"))
    assert _bound(copy) == [("tier.not-derived", path, "claims tier release; the hashes give reference")]


def _image(copy: Bench, kind: str, image: Any, of_gates: Any) -> list[tuple[str, str, str]]:
    run, gates = copy.read(paths.RUN), copy.read(paths.GATES)
    run["subject"].update(kind=kind, image=image)
    gates["image"] = of_gates
    view = EvidenceView(copy.root)
    for path in (*binding._NAME_A_RUN, paths.POLICY, paths.PINS):
        view.document(path)
    view._documents |= {paths.RUN: run, paths.GATES: gates}  # whatever else a schema asks of a container
    return [(f.code, f.file, f.detail) for f in binding.check(view, copy.good.trust)]


def test_an_image_is_named_exactly_if_a_container_ran_and_the_gates_name_it_too(copy: Bench) -> None:
    another = ("binding.image", paths.GATES, "results of another image than the run's")
    exactly = ("binding.image", paths.RUN, "an image is named exactly if a container ran")
    assert _image(copy, "container", IMAGE, IMAGE["platform"]) == []
    assert _image(copy, "process", None, None) == []
    assert _image(copy, "container", IMAGE, None) == [another]
    assert _image(copy, "container", IMAGE, IMAGE["config"]) == [another]
    assert _image(copy, "process", None, IMAGE["platform"]) == [another]
    assert _image(copy, "process", IMAGE, IMAGE["platform"]) == [exactly]
    assert _image(copy, "container", None, None) == [exactly]


def test_the_source_is_one_commit_in_one_state(copy: Bench) -> None:
    commit = copy.read(paths.RUN)["source"]["commit"]
    copy.edit(paths.GATES, lambda document: document.update(commit="f" * 40))
    copy.edit(paths.ENVIRONMENT, lambda document: document["source"].update(dirty=True))
    assert _bound(copy) == [
        ("binding.commit", paths.GATES, f"results of commit {'f' * 40}, the run is of {commit}"),
        ("binding.commit", paths.ENVIRONMENT, "another source state than the run's"),
    ]


def test_every_weight_file_has_a_licence_record(copy: Bench) -> None:
    licences = copy.read(paths.LICENCES)
    assert [item["name"] for item in licences["model_files"]] == ["model.safetensors"]
    licences["model_files"] = []
    view = EvidenceView(copy.root)
    view.document(paths.LICENCES)
    view._documents[paths.LICENCES] = licences
    found = [(f.code, f.file, f.detail) for f in binding.check(view, copy.good.trust)]
    assert found == [("licences.incomplete", paths.LICENCES, "weight file model.safetensors has no record")]


def test_a_manifest_is_canonical_and_sorted(copy: Bench) -> None:
    document = copy.read(paths.MANIFEST)
    names = [entry["path"] for entry in document["files"]]
    assert names == sorted(set(names))
    assert strictjson.dumps(document) == (copy.root / paths.MANIFEST).read_bytes()
