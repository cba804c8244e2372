"""From a saved archive to our image: the base as it is, the rest normalised, steps without ids."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from qualification.container import image_archive
from qualification.container.faults import ContainerFault, FaultCode
from qualification.container.layer import measured
from tests.qualification.container.tars import write_tar


def _saved(tmp_path: Path, name: str, mtime: int, copied: str = "COPY dir:0a1b in /opt ") -> Path:
    """An archive as `docker save` writes it: a base layer and one more, made at `mtime`."""
    place = tmp_path / name
    place.mkdir()
    base = measured(write_tar(place / "base.tar", {"a": b"base"}))
    later = measured(write_tar(place / "later.tar", {"b": b"ours"}, mtime=mtime))
    history = [
        {"created_by": "base"},
        {"created_by": f"/bin/sh -c #(nop) {copied}"},
        {"created_by": "ENV x", "empty_layer": True},
    ]
    config = {
        "architecture": "amd64",
        "os": "linux",
        "created": str(mtime),
        "config": {"Labels": {"l": "1"}},
        "history": history,
        "rootfs": {"diff_ids": [base.digest, later.digest]},
    }
    (place / "config.json").write_text(json.dumps(config))
    (place / "manifest.json").write_text(json.dumps([{"Config": "config.json", "Layers": ["base.tar", "later.tar"]}]))
    with tarfile.open(tmp_path / f"{name}.tar", "w") as archive:
        for file in sorted(place.iterdir()):
            archive.add(file, file.name)
    return tmp_path / f"{name}.tar"


def _image(tmp_path: Path, name: str, mtime: int) -> dict[str, str]:
    saved = image_archive.unpack(_saved(tmp_path, name, mtime), tmp_path / f"{name}.out")
    out = tmp_path / f"{name}.layers"
    out.mkdir()
    image = image_archive.normalised(saved, saved.config["rootfs"]["diff_ids"][:1], out, epoch=5)
    assert json.loads(image.config.content)["history"][1]["created_by"] == "COPY in /opt"
    assert json.loads(image.manifest.content)["annotations"] == {"l": "1"}
    return image.digests


def test_two_builds_at_different_times_are_one_image(tmp_path: Path) -> None:
    assert _image(tmp_path, "first", 100) == _image(tmp_path, "second", 200)


def test_another_base_is_refused(tmp_path: Path) -> None:
    saved = image_archive.unpack(_saved(tmp_path, "first", 1), tmp_path / "out")
    with pytest.raises(ContainerFault, match="its base") as caught:
        image_archive.normalised(saved, ["sha256:" + "0" * 64], tmp_path, epoch=5)
    assert caught.value.code is FaultCode.IMAGE_MALFORMED


def test_an_archive_of_another_shape_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ContainerFault, match="cannot be read"):
        image_archive.unpack(write_tar(tmp_path / "other.tar", {"a": b""}), tmp_path / "out")
