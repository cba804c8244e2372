"""Two builds are compared member by member, and every kind of difference is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from qualification.container import layer_diff, oci
from qualification.container.layer import measured
from tests.qualification.container.tars import Content, write_tar

SOURCE = {"architecture": "amd64", "os": "linux", "config": {"User": "1"}}


def _image(tmp_path: Path, name: str, tree: dict[str, Content], mtime: int = 5, user: str = "1") -> oci.Image:
    layer = measured(write_tar(tmp_path / name, tree, mtime=mtime))
    source = SOURCE | {"config": {"User": user}}
    return oci.assemble(layers=(layer,), source=source, annotations={}, epoch=5, steps=("COPY lib",))


def test_equal_builds_have_no_difference(tmp_path: Path) -> None:
    assert layer_diff.compare(_image(tmp_path, "1", {"a": b"x"}), _image(tmp_path, "2", {"a": b"x"})) == ()


@pytest.mark.parametrize(
    ("tree", "mtime", "path", "what"),
    [
        ({"a": b"y"}, 5, "a", "content"),
        ({"a": b"x"}, 6, "a", "time"),
        ({"a": b"x", "b": b""}, 5, "b", "is in one only"),
        ({"a": None}, 5, "a", "type"),
    ],
)
def test_a_difference_in_a_layer_is_named(
    tmp_path: Path, tree: dict[str, Content], mtime: int, path: str, what: str
) -> None:
    found = layer_diff.compare(_image(tmp_path, "1", {"a": b"x"}), _image(tmp_path, "2", tree, mtime))
    assert any((item.place, item.path) == ("COPY lib", path) and item.what.startswith(what) for item in found)


def test_a_difference_in_the_configuration_is_named(tmp_path: Path) -> None:
    found = layer_diff.compare(_image(tmp_path, "1", {"a": b"x"}), _image(tmp_path, "2", {"a": b"x"}, user="0"))
    assert [(item.place, item.path) for item in found] == [("config", "config")]
