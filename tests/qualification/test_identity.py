"""The tier follows from digests alone; each way to be another model is reported apart."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qualification.digest import GIT_BLOB_SHA1, digest_file
from qualification.errors import InputError
from qualification.identity import Judgement, identity_document, judge, judge_document, survey
from qualification.pins import Pins, parse_pins
from tests.qualification.safetensors_files import entry, write, write_sound

RUN_ID = "20260101T000000Z-test"
WEIGHTS = "model.safetensors"
NESTED = "speech_tokenizer/model.safetensors"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    directory = tmp_path / "model"
    write_sound(directory / WEIGHTS, fill=1)
    write_sound(directory / NESTED, fill=2)
    (directory / "config.json").write_text('{"model_type": "test"}\n')
    (directory / "tokenizer_config.json").write_text("{}\n")
    return directory


@pytest.fixture
def pins(model: Path) -> Pins:
    return parse_pins(_document(model))


def _document(model: Path, tier: str = "release") -> dict[str, Any]:
    inventory = {
        "tensors": 2, "parameters": 6, "dtypes": [{"dtype": "BF16", "tensors": 1}, {"dtype": "F32", "tensors": 1}],
        "header_bytes": None, "listing_sha256": None, "groups": [{"prefix": "a.", "tensors": 1, "parameters": 2}],
    }  # fmt: skip

    def pin(path: str, role: str, algorithm: str) -> dict[str, Any]:
        digest = digest_file(model / path, algorithm)
        return {
            "path": path, "role": role, "bytes": (model / path).stat().st_size, "basis": "published",
            "digest": vars(digest), "inventory": inventory if role == "weights" else None,
        }  # fmt: skip

    files = [
        pin("config.json", "config", GIT_BLOB_SHA1),
        pin(WEIGHTS, "weights", "sha256"),
        pin(NESTED, "weights", "sha256"),
    ]
    one = {
        "id": "example/voice", "revision": "r1", "tier": tier, "licence": "Apache-2.0", "source": "this test",
        "files": files, "unpinned": ["tokenizer_config.json", "README.md"],
    }  # fmt: skip
    return {"schema": "urn:assay:schema:pins:v1", "models": [one]}


def _judge(model: Path, pins: Pins, *, accept_symlinks: bool = False) -> Judgement:
    """Judge a directory, and check that the stored document leads to the same judgement."""
    judgement = judge(survey(model, pins, accept_symlinks=accept_symlinks), pins, accept_symlinks=accept_symlinks)
    document = identity_document(RUN_ID, judgement, accept_symlinks=accept_symlinks)
    assert judge_document(document, pins) == judgement
    return judgement


def test_complete_match_gives_the_pinned_tier(model: Path, pins: Pins) -> None:
    judgement = _judge(model, pins)
    assert judgement.tier == "release"
    assert judgement.paths("matched") == ("config.json", WEIGHTS, NESTED)
    assert judgement.paths("recorded") == ("tokenizer_config.json",)


@pytest.mark.parametrize("tier", ["release", "reference", "shape"])
def test_tier_is_that_of_the_pins(model: Path, tier: str) -> None:
    assert _judge(model, parse_pins(_document(model, tier))).tier == tier


def _flip(model: Path) -> None:
    data = bytearray((model / WEIGHTS).read_bytes())
    data[-1] ^= 1
    (model / WEIGHTS).write_bytes(data)


def _truncate(model: Path) -> None:
    (model / NESTED).write_bytes((model / NESTED).read_bytes()[:-1])


def _remove(model: Path) -> None:
    (model / "config.json").unlink()


def _add(model: Path) -> None:
    (model / "modeling.py").write_text("print('surprise')\n")


def _pipe(model: Path) -> None:
    os.mkfifo(model / "pipe")


def _linked_file(model: Path) -> None:
    (model / WEIGHTS).rename(model.parent / "blob")
    (model / WEIGHTS).symlink_to(model.parent / "blob")


def _linked_directory(model: Path) -> None:
    (model / "speech_tokenizer").rename(model.parent / "elsewhere")
    (model / "speech_tokenizer").symlink_to(model.parent / "elsewhere")


@pytest.mark.parametrize(
    ("damage", "outcome", "path"),
    [
        (_flip, "different", WEIGHTS),
        (_truncate, "different", NESTED),
        (_remove, "missing", "config.json"),
        (_add, "extra", "modeling.py"),
        (_pipe, "irregular", "pipe"),
        (_linked_file, "irregular", WEIGHTS),
        (_linked_directory, "irregular", "speech_tokenizer"),
    ],
)
def test_each_damage_is_named_and_takes_the_tier(
    model: Path, pins: Pins, damage: Callable[[Path], None], outcome: str, path: str
) -> None:
    damage(model)
    judgement = _judge(model, pins)
    assert judgement.tier == "unverified"
    assert path in judgement.paths(outcome)
    assert path in judgement.sentence


def test_accepted_symlinks_are_hashed_and_never_release(model: Path, pins: Pins) -> None:
    _linked_file(model)
    judgement = _judge(model, pins, accept_symlinks=True)
    assert judgement.paths("matched") == ("config.json", WEIGHTS, NESTED)
    assert judgement.tier == "unverified"
    assert "symbolic links" in judgement.sentence


def test_a_link_to_a_directory_is_refused_even_when_links_are_accepted(model: Path, pins: Pins) -> None:
    _linked_directory(model)
    judgement = _judge(model, pins, accept_symlinks=True)
    assert judgement.paths("irregular") == ()
    assert judgement.paths("missing") == (NESTED,)
    assert judgement.tier == "unverified"


def test_unsound_weights_take_the_tier_even_with_the_pinned_digest(model: Path) -> None:
    write(model / WEIGHTS, {"a.weight": entry(0, 8), "b.weight": entry(4, 12)}, bytes(12))
    document = _document(model)
    document["models"][0]["files"][1]["inventory"] = None
    judgement = _judge(model, parse_pins(document))
    assert WEIGHTS in judgement.paths("matched")
    assert judgement.tier == "unverified"
    assert "unsound" in judgement.sentence


def test_tensors_other_than_pinned_are_different(model: Path) -> None:
    document = _document(model)
    document["models"][0]["files"][1]["inventory"]["parameters"] = 7
    judgement = _judge(model, parse_pins(document))
    finding = next(item for item in judgement.findings if item.path == WEIGHTS)
    assert (finding.outcome, finding.detail) == ("different", "parameters: 6 instead of 7")


def test_another_model_is_unverified(model: Path, pins: Pins, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger"
    write_sound(stranger / "weights.safetensors")
    judgement = _judge(stranger, pins)
    assert (judgement.tier, judgement.model) == ("unverified", None)


def test_nothing_given_is_unverified(pins: Pins) -> None:
    document = identity_document(RUN_ID, judge((), pins))
    assert (document["tier"], document["files"], document["model"]) == ("unverified", [], None)


def test_a_document_cannot_claim_a_tier(model: Path, pins: Pins) -> None:
    _flip(model)
    document = identity_document(RUN_ID, judge(survey(model, pins), pins))
    document["tier"] = "release"
    for item in document["files"]:
        item["outcome"] = "matched"
    assert judge_document(document, pins).tier == "unverified"


def test_missing_and_empty_directories_are_refused(tmp_path: Path, pins: Pins) -> None:
    with pytest.raises(InputError, match="does not exist"):
        survey(tmp_path / "nowhere", pins)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="is empty"):
        survey(tmp_path / "empty", pins)


def test_the_closest_model_is_the_one_with_its_weights(model: Path) -> None:
    document = _document(model)
    decoy = {**document["models"][0], "id": "example/decoy", "tier": "reference"}
    decoy["files"] = [
        {**item, "digest": {"algorithm": "sha256", "value": "0" * 64}} if item["role"] == "weights" else item
        for item in decoy["files"]
    ]
    document["models"].insert(0, decoy)
    judgement = _judge(model, parse_pins(document))
    assert judgement.model is not None
    assert judgement.model.id == "example/voice"
