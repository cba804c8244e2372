"""The shipped pins say what is public, and a pin without a digest does not load."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from qualification import strictjson
from qualification.errors import InputError, SchemaError
from qualification.paths import data_file
from qualification.pins import load_pins, parse_pins


@pytest.fixture
def document() -> dict[str, Any]:
    return copy.deepcopy(strictjson.load(data_file("pins.json")))


def test_the_published_checkpoint_is_pinned() -> None:
    (model,) = load_pins().of_tier("release")
    assert model.revision == "5ecdb67327fd37bb2e042aab12ff7391903235d3"
    weights = [pin for pin in model.files if pin.role == "weights"]
    assert [(pin.path, pin.bytes) for pin in weights] == [
        ("model.safetensors", 3_833_402_552),
        ("speech_tokenizer/model.safetensors", 682_293_092),
    ]


def test_published_sizes_agree_with_the_tensors() -> None:
    """Header, parameters and dtype must add up to the file: 8 + header + 2 or 4 bytes a parameter."""
    (model,) = load_pins().of_tier("release")
    talker, codec = (pin for pin in model.files if pin.role == "weights")
    assert talker.inventory is not None
    assert codec.inventory is not None
    assert talker.inventory.header_bytes == 49_840  # published as 49,848 with the 8 length bytes in front
    assert talker.bytes == 8 + 49_840 + 2 * talker.inventory.parameters
    assert 0 < codec.bytes - 4 * codec.inventory.parameters < 100_000


def test_unconfirmed_pins_say_so() -> None:
    (model,) = load_pins().of_tier("release")
    assert {pin.path for pin in model.files if pin.basis == "family"} == {"vocab.json", "merges.txt"}


def test_only_one_tier_is_written_by_hand() -> None:
    assert {pin.basis for model in load_pins().models if model.tier != "release" for pin in model.files} <= {"measured"}


@pytest.mark.parametrize(
    "digest",
    [
        None,
        {"algorithm": "sha256", "value": None},
        {"algorithm": "sha256", "value": ""},
        {"algorithm": "sha256", "value": "0" * 40},
        {"algorithm": "git-blob-sha1", "value": "0" * 64},
        {"algorithm": "md5", "value": "0" * 64},
        {"algorithm": "sha256", "value": "G" * 64},
    ],
)
def test_a_pin_without_a_digest_does_not_load(document: dict[str, Any], digest: Any) -> None:
    document["models"][0]["files"][0]["digest"] = digest
    with pytest.raises(SchemaError, match=r"\.files\[0\]\.digest"):
        parse_pins(document)


@pytest.mark.parametrize("path", ["/etc/passwd", "../up", "a/../b", "./a", "a\\b", ""])
def test_a_pin_stays_in_the_directory(document: dict[str, Any], path: str) -> None:
    document["models"][0]["files"][0]["path"] = path
    with pytest.raises(SchemaError, match=r"\.files\[0\]\.path"):
        parse_pins(document)


def _twice_model(document: dict[str, Any]) -> None:
    document["models"].append(document["models"][0])


def _twice_file(document: dict[str, Any]) -> None:
    document["models"][0]["unpinned"].append("config.json")


def _licence(document: dict[str, Any]) -> None:
    document["models"][0]["licence"] = "Apache-2.0 AND"


def _no_weights(document: dict[str, Any]) -> None:
    model = document["models"][0]
    model["files"] = [item for item in model["files"] if item["role"] != "weights"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_twice_model, "is pinned 2 times"),
        (_twice_file, "config.json is named 2 times"),
        (_licence, "is no SPDX expression"),
        (_no_weights, "no file of role weights"),
    ],
)
def test_contradictions_are_refused(document: dict[str, Any], damage: Any, message: str) -> None:
    damage(document)
    with pytest.raises(InputError, match=message):
        parse_pins(document)
