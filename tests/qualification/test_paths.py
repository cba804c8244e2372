"""Paths inside a bundle, and the walk that follows nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from qualification import paths
from qualification.errors import BundleError

LEAVING = ["", "/etc/passwd", "..", "../a", "a/../b", "./a", "a//b", "a/", "a\\b", "a\0b", "a b", ".hidden", "ä", "C:a"]


@pytest.mark.parametrize("path", [*LEAVING, "a" * 513])
def test_refuses_a_path(path: str) -> None:
    with pytest.raises(BundleError, match="no plain relative path"):
        paths.check_bundle_path(path)


@pytest.mark.parametrize("path", ["run.json", "samples/b1.jsonl", "audio/0f.wav", "a-b_c.d/e"])
def test_accepts_a_path(path: str) -> None:
    assert paths.check_bundle_path(path) == path


def test_locate_refuses_links_special_files_and_absence(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
    (tmp_path / "file").symlink_to(tmp_path / "real" / "a")
    os.mkfifo(tmp_path / "pipe")
    assert paths.locate(tmp_path, "real/a").read_bytes() == b"x"
    for path, message in (
        ("link/a", "link is a symbolic link"),
        ("file", "symbolic link"),
        ("pipe", "not a regular file"),
        ("real", "not a regular file"),
        ("real/b", "no such file"),
    ):
        with pytest.raises(BundleError, match=message):
            paths.locate(tmp_path, path)


def test_walk(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c").write_bytes(b"")
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / "empty").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    walked = paths.walk(tmp_path)
    assert walked.files == ("a", "b/c")
    assert walked.irregular == ("empty/", "loop")


def test_what_ships_with_the_package_is_found() -> None:
    assert paths.data_file(paths.POLICY).is_file()
    assert (paths.schema_directory() / "run.schema.json").is_file()
