"""The base holds what its packages own, less the dropped ones, and says which packages those are."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from qualification.container.base import load_plan
from qualification.container.base_tree import BasePlan, prune
from qualification.container.faults import ContainerFault, FaultCode
from tests.qualification.container.tars import Content, write_tar

PLAN = BasePlan(
    suite="bookworm",
    architecture="amd64",
    epoch=5,
    packages=("python",),
    dropped=frozenset({"tar"}),
    user="assay",
    uid=10001,
    gid=10001,
)
TREE: dict[str, Content] = {
    "./usr/bin/python3.11": b"interpreter",
    "./usr/bin/tar": b"tool",
    "./usr/share/doc/python/copyright": b"text",
    "./usr/share/doc/python/changelog": b"long",
    "./usr/share/man/x": b"page",
    "./var/cache/apt/archives/python.deb": b"archive",
    "./var/lib/dpkg/status.d/python": b"Package: python\n",
    "./var/lib/dpkg/status.d/python.list": b"\n".join(
        (
            b"./usr/bin/python3.11",
            b"./usr/share/doc/python/copyright",
            b"./usr/share/doc/python/changelog",
            b"./usr/share/man/x",
        )
    ),
    "./var/lib/dpkg/status.d/tar": b"Package: tar\n",
    "./var/lib/dpkg/status.d/tar.list": b"./usr/bin/tar\n",
}


def _names(tmp_path: Path, tree: dict[str, Content] = TREE) -> set[str]:
    prune(write_tar(tmp_path / "tree.tar", tree), tmp_path / "layer.tar", PLAN)
    with tarfile.open(tmp_path / "layer.tar") as archive:
        return set(archive.getnames())


def test_what_packages_own_stays_and_the_rest_goes(tmp_path: Path) -> None:
    names = _names(tmp_path)
    assert {"usr/bin/python3.11", "usr/share/doc/python/copyright", "var/lib/dpkg/status.d/python"} <= names
    gone = {"usr/bin/tar", "var/lib/dpkg/status.d/tar", "var/lib/dpkg/status.d/python.list", "usr/share/man/x"}
    assert not names & (gone | {"usr/share/doc/python/changelog", "var/cache/apt/archives/python.deb"})


def test_the_account_and_the_link_are_there(tmp_path: Path) -> None:
    assert {"etc/passwd", "etc/group", "usr/bin/python3", "tmp"} <= _names(tmp_path)
    with tarfile.open(tmp_path / "layer.tar") as archive:
        stream = archive.extractfile("etc/passwd")
        assert stream is not None
        assert b"assay:x:10001:10001:" in stream.read()
        assert archive.getmember("tmp").mode == 0o1777


def test_no_set_user_id_bit_survives(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "tree.tar", "w") as archive:
        header = tarfile.TarInfo("./usr/bin/python3.11")
        header.mode = 0o4755
        archive.addfile(header)
    tree = {name: content for name, content in TREE.items() if name != "./usr/bin/python3.11"}
    write_tar(tmp_path / "rest.tar", tree)
    with tarfile.open(tmp_path / "tree.tar", "a") as archive, tarfile.open(tmp_path / "rest.tar") as rest:
        for member in rest:
            archive.addfile(member, rest.extractfile(member) if member.isreg() else None)
    prune(tmp_path / "tree.tar", tmp_path / "layer.tar", PLAN)
    with tarfile.open(tmp_path / "layer.tar") as archive:
        assert archive.getmember("usr/bin/python3.11").mode == 0o755


def test_a_tree_without_notes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ContainerFault, match="lists no package") as caught:
        _names(tmp_path, {"./usr/bin/python3.11": b""})
    assert caught.value.code is FaultCode.BASE_NOT_BUILT


def test_the_packaged_plan_keeps_no_tool() -> None:
    plan = load_plan()
    assert {"dpkg", "tar", "mawk", "debconf", "openssl"} <= plan.dropped
    assert not plan.dropped & set(plan.packages)
