"""The comparison of Python versions: what is compared, and that it fails where versions differ or where there is one."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.qualification.verify import pythons


def test_a_line_holds_name_status_and_document(tmp_path: Path) -> None:
    pythons.lay_out(tmp_path, tampers=False)
    wreck = tmp_path / "wreck"
    wreck.mkdir()
    first, second = pythons.answers(Path(sys.executable), tmp_path).decode().splitlines()
    assert first.startswith('good 0 {"answer": "qualified"')
    assert second.startswith('wreck 10 {"answer": "refused"')


def _compare(monkeypatch: pytest.MonkeyPatch, told: Mapping[str, bytes]) -> int:
    monkeypatch.setattr(pythons, "lay_out", lambda directory: None)
    monkeypatch.setattr(pythons, "found", lambda: {version: Path(version) for version in told})
    monkeypatch.setattr(pythons, "environment", lambda executable, directory: executable)
    monkeypatch.setattr(pythons, "answers", lambda python, directory: told[str(python)])
    return pythons.main()


def test_two_versions_must_write_the_same_bytes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _compare(monkeypatch, {"3.11.7": b"good 0 {}\n", "3.12.1": b"good 0 {}\n"}) == 0
    assert _compare(monkeypatch, {"3.11.7": b"good 0 {}\n", "3.12.1": b"good 0 { }\n"}) == 1
    assert capsys.readouterr().out.endswith("2 versions: DIFFERENT answers\n")
    assert _compare(monkeypatch, {"3.11.7": b"good 0 {}\n"}) == 1
    assert _compare(monkeypatch, {}) == 1


def test_this_interpreter_or_its_like_is_found() -> None:
    found = pythons.found()
    assert found
    assert all(version.startswith("3.") and place.is_file() for version, place in found.items())
