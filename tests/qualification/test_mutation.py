"""What is kept of the mutation run: no reason for a line that is not there any more, and every test that is named exists."""

from __future__ import annotations

import pytest

from qualification import strictjson
from tests.qualification import mutation

KEPT = strictjson.load(mutation.SURVIVORS)


@pytest.mark.parametrize("module", KEPT)
def test_a_reason_belongs_to_a_line_that_is_there(module: str) -> None:
    source = (mutation.REPOSITORY / "qualification" / f"{module}.py").read_text(encoding="utf-8")
    lines = {line.strip() for line in source.splitlines()}
    assert module in mutation.NEAREST
    for change, reason in KEPT[module].items():
        removed = [line[1:].strip() for line in change.splitlines() if line.startswith("-")]
        assert removed
        assert set(removed) <= lines, f"{module}: mutate it again, this line is gone: {removed}"
        assert len(reason.split()) >= 4


def test_modules_and_their_nearest_tests_are_there() -> None:
    for module, tests in mutation.NEAREST.items():
        assert (mutation.REPOSITORY / "qualification" / f"{module}.py").is_file()
        assert all((mutation.REPOSITORY / "tests" / "qualification" / test).is_file() for test in tests)


def test_every_step_of_the_verifier_is_mutated() -> None:
    steps = (mutation.REPOSITORY / "qualification" / "verify").glob("*.py")
    no_step = {"__init__", "findings", "trust", "verifier"}
    assert {f"verify/{path.stem}" for path in steps if path.stem not in no_step} <= set(mutation.NEAREST)


def test_a_survivor_is_told_by_the_lines_that_changed() -> None:
    shown = "# name: survived\n--- a.py\n+++ a.py\n@@ -1 +1 @@\n x\n-    a > b\n+    a >= b\n y"
    assert mutation._change(shown) == "-    a > b\n+    a >= b"


def test_a_survivor_without_a_reason_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: object
) -> None:
    change = "-    a > b\n+    a >= b"
    monkeypatch.setattr(mutation, "mutate", lambda module, scratch: (9, {"one": change}))
    monkeypatch.setattr(mutation.strictjson, "load", lambda path: {"signing": {change: "nothing lies on that bound"}})
    assert mutation.main(["signing"]) == 0
    assert "signing: 9 mutants, 8 killed, 1 survived" in capsys.readouterr().out
    assert mutation.main(["manifest"]) == 1
    assert "NO REASON KEPT" in capsys.readouterr().out
