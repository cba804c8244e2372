"""The steps that run inside the build, on a directory that stands for the image."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from qualification.container import layout, stage_check, stage_finish, stage_install, stage_model
from qualification.paths import data_file
from qualification.pinning import pin_model
from tests.qualification.safetensors_files import write_sound

DIGEST = "sha256:" + "a" * 64


@pytest.fixture
def model(tmp_path: Path) -> Path:
    write_sound(tmp_path / "model" / "model.safetensors")
    return tmp_path / "model"


@pytest.fixture
def pins(tmp_path: Path, model: Path) -> Path:
    path = Path(shutil.copy(data_file("pins.json"), tmp_path / "pins.json"))
    pin_model(
        model, tier="reference", model_id="example/small", licence="Apache-2.0", source="this test", pins_path=path
    )
    return path


def test_a_base_by_digest_is_accepted() -> None:
    stage_install.check_base(f"127.0.0.1:5000/assay/base@{DIGEST}")


@pytest.mark.parametrize(
    "base", ["", "debian", "debian:12", f"debian:12@{DIGEST}", "debian@sha256:abc", "127.0.0.1:5000/base"]
)
def test_a_base_by_tag_stops_the_build(base: str) -> None:
    with pytest.raises(SystemExit, match="base_by_tag"):
        stage_install.check_base(base)


def test_a_pip_with_another_hash_stops_the_build(tmp_path: Path) -> None:
    (tmp_path / "pip-1.0-py3-none-any.whl").write_bytes(b"other")
    (tmp_path / "build.txt").write_text("pip==1.0 \\\n    --hash=sha256:" + "0" * 64 + "\n")
    with pytest.raises(SystemExit, match="wheel_hash_differs"):
        stage_install.locked_pip(tmp_path, tmp_path / "build.txt")


def test_a_lock_without_pip_stops_the_build(tmp_path: Path) -> None:
    (tmp_path / "build.txt").write_text("six==1.0 --hash=sha256:" + "0" * 64 + "\n")
    with pytest.raises(SystemExit, match="lock_incomplete"):
        stage_install.locked_pip(tmp_path, tmp_path / "build.txt")


def test_the_pinned_model_passes_and_is_written_down(tmp_path: Path, model: Path, pins: Path) -> None:
    stage_model.main(model, pins, tmp_path / "identity.json")
    assert b'"tier": "reference"' in (tmp_path / "identity.json").read_bytes()


@pytest.mark.parametrize("fault", ["altered", "extra", "missing", "link"])
def test_the_wrong_weights_stop_the_build(tmp_path: Path, model: Path, pins: Path, fault: str) -> None:
    weights = model / "model.safetensors"
    if fault == "altered":
        write_sound(weights, fill=1)
    elif fault == "extra":
        (model / "more.bin").write_bytes(b"x")
    elif fault == "link":
        weights.rename(tmp_path / "elsewhere")
        weights.symlink_to(tmp_path / "elsewhere")
    else:
        weights.rename(model / "other.safetensors")
    with pytest.raises(SystemExit, match="weights_differ"):
        stage_model.main(model, pins, tmp_path / "identity.json")
    assert not (tmp_path / "identity.json").exists()


def test_files_are_settled(tmp_path: Path, model: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "tool").write_text("x")
    (tmp_path / "lib" / "tool").chmod(0o777)
    if os.geteuid() != 0:
        pytest.skip("only root may give files to root")
    stage_finish.settle(tmp_path, model, 5)
    assert stat.S_IMODE((model / "model.safetensors").stat().st_mode) == 0o444
    assert stat.S_IMODE((tmp_path / "lib" / "tool").stat().st_mode) == 0o755
    assert {path.stat().st_mtime for path in tmp_path.rglob("*")} == {5.0}


@pytest.fixture
def root(tmp_path: Path, model: Path, pins: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that looks like the runtime stage's root."""
    if os.geteuid() != 0:
        pytest.skip("only root owns files as the image has them")
    image = tmp_path / "image"
    inside = stage_check.below(image, layout.MODEL)
    shutil.copytree(model, inside)
    (inside / "model.safetensors").chmod(0o444)
    (image / "usr/bin").mkdir(parents=True)
    (image / "usr/bin/python3.11").write_text("x")
    stage_model.main(inside, pins, stage_check.below(image, layout.IDENTITY))
    monkeypatch.setattr(stage_check, "PINS", pins)
    return image


def test_a_good_image_passes_the_last_look(root: Path) -> None:
    stage_check.main(root)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("weights", "weights_differ"),
        ("mode", "not 0444"),
        ("shell", "/usr/bin/sh is a tool"),
        ("pip", "package manager"),
    ],
)
def test_the_last_look_names_what_is_wrong(root: Path, fault: str, words: str) -> None:
    weights = stage_check.below(root, layout.MODEL) / "model.safetensors"
    if fault == "weights":
        weights.chmod(0o644)
        write_sound(weights, fill=3)
        weights.chmod(0o444)
    elif fault == "mode":
        weights.chmod(0o644)
    elif fault == "shell":
        (root / "usr/bin/sh").write_text("x")
    else:
        (stage_check.below(root, layout.SITE) / "pip").mkdir(parents=True)
    with pytest.raises(SystemExit, match=words):
        stage_check.main(root)
