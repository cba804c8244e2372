"""The page of limits names only codes, gates, limitations, tampers and tests that exist; every limitation is on it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from qualification import summary
from qualification.policy import load_policy
from qualification.tamper.corpus import CORPUS
from qualification.verify.findings import CODES

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "docs" / "what-a-bundle-does-not-prove.md").read_text(encoding="utf-8")


def _named(word: str) -> set[str]:
    """Everything in back-ticks after `word`, or joined to it by "and"."""
    found: set[str] = set()
    for group in re.findall(rf"{word}s? (`[^`]+`(?: and `[^`]+`)*)", PAGE):
        found |= set(re.findall(r"`([^`]+)`", group))
    return found


def test_codes_gates_and_tampers_exist() -> None:
    assert _named("code") | _named("note") <= set(CODES)
    assert _named("gate") <= {entry.id for entry in load_policy().gates}
    assert _named("tamper")
    assert _named("tamper") <= {tamper.name for tamper in CORPUS}


def test_every_limitation_of_the_summary_is_on_the_page() -> None:
    source = inspect.getsource(summary)
    codes = set(re.findall(r'_limitation\(\s*"([a-z_]+)"', source)) | {"tier_reference", "tier_shape"}
    assert codes == _named("limitation")
    assert len(codes) >= 7


def test_named_tests_exist() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / "tests" / "qualification").rglob("*.py"))
    names = re.findall(r"`(test_[a-z_]+)`", PAGE)
    assert len(names) >= 2
    for name in names:
        assert f"def {name}(" in tests


def test_every_row_has_a_test_that_shows_it() -> None:
    for row in re.findall(r"^\| \d+ \|.*$", PAGE, re.MULTILINE):
        assert re.search(r"`test_[a-z_]+`", row.rsplit("|", 2)[1]), row


def test_the_rows_are_numbered() -> None:
    numbers = [int(number) for number in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
