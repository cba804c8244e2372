"""What a replica says that it is made of."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from engine.errors import UsageError
from engine.fleet.identity import IMAGE_VARIABLE, identify

DIGEST = "sha256:" + "0" * 64


def test_every_file_of_the_model_is_hashed_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "codec").mkdir()
    (tmp_path / "codec" / "weights").write_bytes(b"one")
    (tmp_path / "config.json").write_bytes(b"two")
    found = identify(tmp_path, {IMAGE_VARIABLE: DIGEST})
    assert found.model_files == {
        "codec/weights": hashlib.sha256(b"one").hexdigest(),
        "config.json": hashlib.sha256(b"two").hexdigest(),
    }
    assert found.image == DIGEST


def test_differences_name_what_differs(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    first = identify(tmp_path, {})
    assert first.differences(identify(tmp_path, {})) == []
    (tmp_path / "b").write_bytes(b"two")
    assert identify(tmp_path, {IMAGE_VARIABLE: DIGEST}).differences(first) == ["model file b", "image digest"]


def test_an_image_that_is_no_digest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="ASSAY_IMAGE_DIGEST='assay:latest'"):
        identify(tmp_path, {IMAGE_VARIABLE: "assay:latest"})
