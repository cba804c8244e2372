"""The final file system of stacked layers: later files win, whiteouts remove, links lead on."""

from __future__ import annotations

from pathlib import Path

import pytest

from qualification.container.image_tree import ImageTree
from qualification.container.layer import Layer, measured
from tests.qualification.container.tars import Content, write_tar


def _layers(tmp_path: Path, *trees: dict[str, Content]) -> list[Layer]:
    return [measured(write_tar(tmp_path / f"{number}.tar", tree)) for number, tree in enumerate(trees)]


def test_later_layers_win(tmp_path: Path) -> None:
    with ImageTree(_layers(tmp_path, {"a": b"old", "b": b"kept"}, {"a": b"new"})) as tree:
        assert (tree.read("/a"), tree.read("b"), list(tree.files())) == (b"new", b"kept", ["a", "b"])


def test_whiteouts_remove(tmp_path: Path) -> None:
    layers = _layers(
        tmp_path,
        {"d": None, "d/a": b"", "d/b": b"", "e": None, "e/x": b""},
        {"d/.wh.a": b"", "e/.wh..wh..opq": b"", "e/y": b"new"},
    )
    with ImageTree(layers) as tree:
        assert list(tree.files()) == ["d/b", "e/y"]


def test_links_are_followed_in_any_part(tmp_path: Path) -> None:
    with ImageTree(_layers(tmp_path, {"doc/gcc/copyright": b"text", "doc/libgcc": "gcc", "abs": "/doc/gcc"})) as tree:
        assert tree.read("doc/libgcc/copyright") == tree.read("abs/copyright") == b"text"


@pytest.mark.parametrize("path", ["missing", "loop", "d"])
def test_what_is_no_file_is_a_key_error(tmp_path: Path, path: str) -> None:
    with ImageTree(_layers(tmp_path, {"loop": "loop", "d": None})) as tree, pytest.raises(KeyError):
        tree.read(path)
