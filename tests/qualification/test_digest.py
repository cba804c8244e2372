"""Digests and the difference between trees."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from qualification.digest import GIT_BLOB_SHA1, SHA256, Digest, compare, digest_file, sha256_bytes, sha256_file
from qualification.errors import InputError


def _digest(text: str) -> Digest:
    return Digest(algorithm=SHA256, value=sha256_bytes(text.encode()))


def test_file_digests(tmp_path: Path) -> None:
    place = tmp_path / "a"
    data = bytes(range(256)) * 10_000
    place.write_bytes(data)
    assert sha256_file(place) == hashlib.sha256(data).hexdigest()
    expected = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    assert digest_file(place, GIT_BLOB_SHA1) == Digest(algorithm=GIT_BLOB_SHA1, value=expected)


def test_the_git_blob_of_nothing_is_the_well_known_one(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    assert digest_file(tmp_path / "empty", GIT_BLOB_SHA1).value == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


@pytest.mark.parametrize(
    ("algorithm", "value"),
    [("md5", "0" * 32), (SHA256, "0" * 63), (SHA256, "A" * 64), (SHA256, "0" * 64 + "\n"), (GIT_BLOB_SHA1, "0" * 64)],
)
def test_a_digest_is_checked(algorithm: str, value: str) -> None:
    with pytest.raises(InputError):
        Digest(algorithm=algorithm, value=value)


def test_difference_names_each_path() -> None:
    found = {"same": _digest("a"), "changed": _digest("b"), "extra": _digest("c")}
    expected = {"same": _digest("a"), "changed": _digest("B"), "missing": _digest("d")}
    difference = compare(found=found, expected=expected)
    assert (difference.extra, difference.missing, difference.different) == (("extra",), ("missing",), ("changed",))
    assert not difference.agrees
    assert str(difference) == "extra: extra; missing: missing; different: changed"
    assert compare(found=found, expected=found).agrees
    assert str(_digest("a")).startswith("sha256:")
