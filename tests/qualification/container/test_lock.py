"""Locks and wheelhouses: exact versions with hashes, and the very bytes that were locked."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from qualification.container import lock, wheelhouse
from qualification.container.faults import ContainerFault, FaultCode
from qualification.paths import schema_directory

WHEEL = b"not a real wheel; only its bytes matter"
HASH = hashlib.sha256(WHEEL).hexdigest()
LOCKS = schema_directory().parent / "locks"


def _locked(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "lock.txt"
    path.write_text(text)
    return path


def test_the_packaged_locks_load() -> None:
    for name in ("runtime-cpu.txt", "runtime-cuda.txt", "build.txt"):
        assert all(wheel.hashes for wheel in lock.read(LOCKS / name))
    names = {wheel.name for wheel in lock.read(LOCKS / "runtime-cpu.txt")}
    assert "torch" in names
    assert "pip" not in names


def test_the_variants_differ_in_the_build_of_torch() -> None:
    cpu, cuda = ({wheel.name: wheel for wheel in lock.read(LOCKS / f"runtime-{name}.txt")} for name in ("cpu", "cuda"))
    assert cpu["torch"].hashes != cuda["torch"].hashes
    assert {name for name in cuda if name.startswith("nvidia-")}
    assert not {name for name in cpu if name.startswith("nvidia-")}


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "six==1.0\n", f"six>=1.0 --hash=sha256:{HASH}\n", "six==1.0 --hash=sha256:abc\n"]
)
def test_a_pin_without_a_hash_does_not_load(tmp_path: Path, text: str) -> None:
    with pytest.raises(ContainerFault) as caught:
        lock.read(_locked(tmp_path, text))
    assert caught.value.code is FaultCode.LOCK_INCOMPLETE


def test_the_locked_bytes_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "six-1.0-py3-none-any.whl").write_bytes(WHEEL)
    (found,) = wheelhouse.check(tmp_path, lock.read(_locked(tmp_path, f"six==1.0 \\\n    --hash=sha256:{HASH}\n")))
    assert (found.name, found.sha256) == ("six", HASH)


def test_other_bytes_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "six-1.0-py3-none-any.whl").write_bytes(WHEEL + b"!")
    with pytest.raises(ContainerFault, match=r"six-1\.0-py3-none-any\.whl") as caught:
        wheelhouse.check(tmp_path, lock.read(_locked(tmp_path, f"six==1.0 --hash=sha256:{HASH}\n")))
    assert caught.value.code is FaultCode.WHEEL_HASH_DIFFERS


def test_a_wheel_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "six-2.0-py3-none-any.whl").write_bytes(WHEEL)
    with pytest.raises(ContainerFault, match=r"six 1\.0") as caught:
        wheelhouse.check(tmp_path, lock.read(_locked(tmp_path, f"six==1.0 --hash=sha256:{HASH}\n")))
    assert caught.value.code is FaultCode.WHEEL_MISSING
