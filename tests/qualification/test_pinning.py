"""Pinning a directory makes it a known model; what must not be pinned from files is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from qualification.errors import InputError
from qualification.identity import judge, survey
from qualification.paths import data_file
from qualification.pinning import pin_model
from qualification.pins import ModelPins, load_pins
from tests.qualification.safetensors_files import write_raw, write_sound


@pytest.fixture
def model(tmp_path: Path) -> Path:
    write_sound(tmp_path / "model" / "model.safetensors")
    (tmp_path / "model" / "README.md").write_text("---\nlicense: apache-2.0\n---\n")
    return tmp_path / "model"


@pytest.fixture
def pins_path(tmp_path: Path) -> Path:
    return Path(shutil.copy(data_file("pins.json"), tmp_path / "pins.json"))


def _pin(model: Path, pins_path: Path, tier: str = "reference", licence: str = "Apache-2.0") -> ModelPins:
    return pin_model(
        model, tier=tier, model_id="example/small", licence=licence, source="made by this test", pins_path=pins_path
    )


def test_a_pinned_directory_has_its_tier(model: Path, pins_path: Path) -> None:
    before = {item.id for item in load_pins(pins_path).models}
    pinned = _pin(model, pins_path)
    pins = load_pins(pins_path)
    assert {item.id for item in pins.models} == before | {"example/small"}
    assert {pin.path for pin in pinned.files} == {"README.md", "model.safetensors"}
    assert judge(survey(model, pins), pins).tier == "reference"


def test_pinning_again_replaces(model: Path, pins_path: Path) -> None:
    _pin(model, pins_path)
    first = pins_path.read_bytes()
    _pin(model, pins_path)
    assert pins_path.read_bytes() == first
    write_sound(model / "model.safetensors", fill=9)
    _pin(model, pins_path)
    assert pins_path.read_bytes() != first


def test_release_is_never_pinned_from_files(model: Path, pins_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be pinned from files"):
        _pin(model, pins_path, tier="release")


def test_shape_needs_the_published_tensors(model: Path, pins_path: Path) -> None:
    with pytest.raises(InputError, match="departs from the published tensors"):
        _pin(model, pins_path, tier="shape")


def test_the_packaged_synthetic_model_has_the_published_tensors() -> None:
    pins = load_pins(data_file("pins.json"))
    (release,), (shape,) = pins.of_tier("release"), pins.of_tier("shape")
    talker, codec = (shape.file(path) for path in ("model.safetensors", "speech_tokenizer/model.safetensors"))
    published = release.file("model.safetensors"), release.file("speech_tokenizer/model.safetensors")
    assert talker and talker.inventory and published[0] and published[0].inventory
    assert codec and codec.inventory and published[1] and published[1].inventory
    assert (talker.inventory.tensors, talker.inventory.parameters) == (404, 1_916_676_352)
    assert published[0].inventory.dtypes == talker.inventory.dtypes
    assert codec.inventory.groups == published[1].inventory.groups  # its decoder alone
    assert {talker.digest.value, codec.digest.value}.isdisjoint(pin.digest.value for pin in release.files)


def test_links_are_not_pinned(model: Path, pins_path: Path) -> None:
    (model / "config.json").symlink_to(model / "README.md")
    with pytest.raises(InputError, match=r"config\.json is a symlink"):
        _pin(model, pins_path)


def test_unsound_weights_are_not_pinned(model: Path, pins_path: Path) -> None:
    write_raw(model / "model.safetensors", b"{}", b"")
    with pytest.raises(InputError, match="is unsound"):
        _pin(model, pins_path)


def test_an_unknown_licence_is_not_pinned(model: Path, pins_path: Path) -> None:
    before = pins_path.read_bytes()
    with pytest.raises(InputError, match="no canonical SPDX"):
        _pin(model, pins_path, licence="free")
    assert pins_path.read_bytes() == before
