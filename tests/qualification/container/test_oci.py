"""Images as bytes: canonical, complete, and read back only unaltered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qualification.container import oci, oci_store
from qualification.container.faults import ContainerFault, FaultCode
from qualification.container.layer import measured
from tests.qualification.container.tars import write_tar

SOURCE = {
    "architecture": "amd64",
    "os": "linux",
    "created": "2026-01-01T00:00:00Z",
    "docker_version": "20",
    "container": "abc",
    "config": {
        "User": "1:1",
        "Hostname": "abc",
        "Image": "sha256:x",
        "Env": ["A=1"],
        "Labels": {"l": "1"},
        "Volumes": None,
    },
}


def _image(tmp_path: Path, **changes: object) -> oci.Image:
    layer = measured(write_tar(tmp_path / "layer.tar", {"a": b"one"}))
    values: dict[str, object] = {
        "layers": (layer,),
        "source": SOURCE,
        "annotations": {"l": "1"},
        "epoch": 5,
        "steps": ("base",),
    }
    return oci.assemble(**(values | changes))  # type: ignore[arg-type]


def test_what_a_builder_adds_by_itself_does_not_show(tmp_path: Path) -> None:
    other = SOURCE | {"created": "2027-01-01T00:00:00Z", "docker_version": "28", "container": "xyz"}
    config = json.loads(_image(tmp_path).config.content)
    assert _image(tmp_path, source=other).digests == _image(tmp_path).digests
    assert config["config"] == {"User": "1:1", "Env": ["A=1"], "Labels": {"l": "1"}}
    assert config["created"] == "1970-01-01T00:00:05Z"


@pytest.mark.parametrize(
    "changes",
    [{"epoch": 6}, {"annotations": {}}, {"source": SOURCE | {"config": {}}}],
    ids=["time", "annotations", "config"],
)
def test_what_matters_shows(tmp_path: Path, changes: dict[str, object]) -> None:
    assert _image(tmp_path, **changes).manifest.digest != _image(tmp_path).manifest.digest


def test_the_four_names_point_to_each_other(tmp_path: Path) -> None:
    image = _image(tmp_path)
    manifest = json.loads(image.manifest.content)
    assert json.loads(image.index.content)["manifests"][0]["digest"] == image.manifest.digest
    assert manifest["config"]["digest"] == image.config.digest
    assert json.loads(image.config.content)["rootfs"]["diff_ids"] == [item["digest"] for item in manifest["layers"]]


def test_a_stored_image_is_read_back(tmp_path: Path) -> None:
    image = oci_store.save(_image(tmp_path), tmp_path / "layout")
    assert oci_store.load(tmp_path / "layout") == image


@pytest.mark.parametrize("part", ["config", "manifest", "index", "layer"])
@pytest.mark.parametrize("fault", ["altered", "missing"])
def test_an_altered_or_missing_blob_is_refused(tmp_path: Path, part: str, fault: str) -> None:
    image = oci_store.save(_image(tmp_path), tmp_path / "layout")
    digest = image.layers[0].digest if part == "layer" else image.digests["platform" if part == "manifest" else part]
    blob = tmp_path / "layout" / "blobs" / "sha256" / digest.removeprefix("sha256:")
    content = blob.read_bytes()
    blob.unlink()
    if fault == "altered":
        blob.write_bytes(content + b" ")
    with pytest.raises(ContainerFault, match="missing or altered") as caught:
        oci_store.load(tmp_path / "layout")
    assert caught.value.code is FaultCode.IMAGE_MALFORMED


def test_an_empty_layout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ContainerFault, match=r"index\.json"):
        oci_store.load(tmp_path)
