"""Equal files give equal layers, whatever clock, order or account made them; different files do not."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from qualification.container.layer import canonical, normalise
from tests.qualification.container.tars import Content, write_tar

FILES: dict[str, Content] = {"./opt": None, "./opt/a": b"one", "./opt/b": "a"}


def _digest(path: Path, name: str, entries: dict[str, Content], **how: object) -> str:
    layer = normalise(write_tar(path / f"{name}.in", entries, **how), path / f"{name}.out", epoch=5)  # type: ignore[arg-type]
    assert layer is not None
    return layer.digest


def test_clock_order_and_account_do_not_show(tmp_path: Path) -> None:
    first = _digest(tmp_path, "first", FILES)
    assert _digest(tmp_path, "second", FILES, mtime=99, owner="somebody", backwards=True) == first


@pytest.mark.parametrize(
    "changed",
    [{"./opt/a": b"two"}, {"./opt/b": "c"}, {"./opt/c": b""}, {"./opt/a": None}],
    ids=["content", "link", "name", "type"],
)
def test_a_change_shows(tmp_path: Path, changed: dict[str, Content]) -> None:
    assert _digest(tmp_path, "changed", FILES | changed) != _digest(tmp_path, "first", FILES)


def test_one_time_and_no_names_are_left(tmp_path: Path) -> None:
    _digest(tmp_path, "first", FILES, mtime=99, owner="somebody")
    with tarfile.open(tmp_path / "first.out") as archive:
        assert {(member.mtime, member.uname) for member in archive} == {(5, "")}
        assert archive.getnames() == sorted(archive.getnames())


def test_a_layer_of_nothing_is_none(tmp_path: Path) -> None:
    assert normalise(write_tar(tmp_path / "empty.in", {"./": None}), tmp_path / "empty.out", epoch=5) is None
    assert not (tmp_path / "empty.out").exists()


@pytest.mark.parametrize(
    ("name", "expected"),
    [("./a/b/", "a/b"), ("/a", "a"), (".", ""), ("./", ""), (".hidden", ".hidden"), ("../x", "../x")],
)
def test_canonical(name: str, expected: str) -> None:
    assert canonical(name) == expected
