"""Each comparison that must be refused is refused by its own finding: one thing changed, the rest sealed again."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qualification import paths, schema, strictjson
from qualification.controlled.sealing import manifest_document
from qualification.gates.table import GATES
from qualification.verify.controlled import ControlledVerification, verify_controlled
from qualification.verify.findings import CODES
from qualification.verify.trust import Trust
from tests.qualification.desk import Desk
from tests.qualification.test_run_container import VERIFIER

ROOT = str(Path(__file__).resolve().parents[3])

Change = Callable[[Path], object]


def _replace(place: Path, data: bytes) -> None:
    place.unlink(missing_ok=True)
    place.write_bytes(data)


def _edit(name: str, change: Callable[[Any], object]) -> Change:
    def edit(root: Path) -> None:
        document = strictjson.load(root / name)
        change(document)
        _replace(root / name, strictjson.dumps(document))

    return edit


def _schedule(change: Callable[[Any], object]) -> Change:
    return _edit("schedule.json", change)


def _attempt(number: int, **values: Any) -> Change:
    return _schedule(lambda d: d["runs"][number - 1]["attempts"][-1].update(values))


def _twice(document: Any) -> None:
    document["runs"][1]["attempts"].insert(0, dict(document["runs"][1]["attempts"][0]))


def _one_session_more(root: Path) -> None:
    shutil.copy(root / "a/records/session-04.json", root / "a/records/session-05.json")
    _edit("a/records/session-05.json", lambda session: session.update(number=5))(root)


def _swap_sessions(document: Any) -> None:
    first, second = document["runs"][0]["attempts"][0], document["runs"][3]["attempts"][0]
    first["session"], second["session"] = second["session"], first["session"]


def _swap_runs(document: Any) -> None:
    runs = document["runs"]
    runs[0], runs[1] = runs[1], runs[0]


CASES: dict[str, tuple[str, Change]] = {
    "a stranger beside the bundles": ("comparison.file", lambda root: (root / "notes.txt").write_text("x")),
    "the comparison left out": ("document.malformed", lambda root: (root / "comparison.json").unlink()),
    "a space at the end": ("document.not-canonical",
                           lambda root: _replace(root / "schedule.json", (root / "schedule.json").read_bytes() + b" ")),
    "a run left out": ("schedule.plan", _schedule(lambda d: d["runs"].pop())),
    "a run twice": ("schedule.plan", _schedule(lambda d: d["runs"].append(d["runs"][-1]))),
    "two runs exchanged": ("schedule.plan", _schedule(_swap_runs)),
    "fewer rounds in the design": ("schedule.plan", _schedule(lambda d: d["design"].update(rounds=1))),
    "a run without an attempt": ("schedule.missing", _schedule(lambda d: d["runs"][2].update(attempts=[]))),
    "a run that failed": ("schedule.missing", _attempt(3, outcome="failed", detail="it died")),
    "a run that succeeded twice": ("schedule.missing", _schedule(_twice)),
    "an attempt that no session belongs to": ("schedule.unowned", _attempt(3, session=9)),
    "a failed attempt left out": ("schedule.unowned", _one_session_more),
    "sessions exchanged": ("schedule.session", _schedule(_swap_sessions)),
    "a run that ended before it measured": ("schedule.session", _attempt(2, ended_ns=0)),
    "a run at another hour": ("schedule.order", _attempt(2, started_utc="2026-01-01T00:00:00Z")),
    "runs that overlap": ("schedule.order", _attempt(2, ended_utc="2099-01-01T00:00:00Z")),
    "other requests on one side": ("schedule.unlike",
                                   _schedule(lambda d: d["hashes"]["b"].update(requests="0" * 64))),
    "a delivery that nobody saw": ("schedule.differs",
                           _schedule(lambda d: d["subjects"]["b"].update(delivery="unknown"))),
    "called stable": ("schedule.differs", _schedule(lambda d: d["runs"][0]["stability"].update(verdict="stable"))),
    "failures forgotten": ("schedule.differs", _schedule(lambda d: d["runs"][0].update(requests=3))),
    "another verdict": ("comparison.differs", _edit("comparison.json", lambda d: d["profiles"][0]["figures"][0].update(
        verdict="better"))),
}  # fmt: skip


def _verified(root: Path, room: Desk) -> ControlledVerification:
    trust = Trust(
        policy=schema.load("policy", room.root / "policy.json"), pins=schema.load("pins", room.root / "pins.json")
    )
    return verify_controlled(root, trust, GATES)


@pytest.mark.parametrize("name", CASES)
def test_is_refused(name: str, copy: Path, room: Desk) -> None:
    code, change = CASES[name]
    change(copy)
    if (copy / "comparison.json").exists():
        _replace(copy / paths.MANIFEST, strictjson.dumps(manifest_document(copy, "20260101T000000Z-000000")))
    verification = _verified(copy, room)
    assert code in {finding.code for finding in verification.findings if finding.refuses}
    assert verification.refused
    assert verification.exit_code >= 10


def test_every_code_has_a_case() -> None:
    of_comparisons = {code for code in CODES if code.startswith(("comparison.", "schedule."))}
    assert of_comparisons == {code for code, _ in CASES.values() if code.startswith(("comparison.", "schedule."))}


def test_an_auditor_needs_none_of_the_harness(room: Desk) -> None:
    options = ["--policy", str(room.root / "policy.json"), "--pins", str(room.root / "pins.json")]
    command = [sys.executable, "-c", VERIFIER, "verify", str(room.out), *options, "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["answer"] == "sound"


def test_a_bundle_that_is_refused_refuses_the_comparison(copy: Path, room: Desk) -> None:
    _edit("a/run.json", lambda run: run.update(tier="release"))(copy)
    verification = _verified(copy, room)
    assert verification.bundles["a"].refused
    assert (verification.refused, verification.exit_code) == (True, 10)


def test_what_was_not_sealed_is_found(copy: Path, room: Desk) -> None:
    _schedule(lambda d: d["subjects"]["a"].update(asked_for="something else"))(copy)
    codes = {finding.code for finding in _verified(copy, room).findings if finding.refuses}
    assert {"comparison.file"} <= codes
    assert "statement.differs" not in codes  # the manifest is what was signed, and it was left alone


def test_sealed_again_by_another_key(copy: Path, room: Desk) -> None:
    _schedule(lambda d: d["subjects"]["a"].update(asked_for="something else"))(copy)
    _replace(copy / paths.MANIFEST, strictjson.dumps(manifest_document(copy, "20260101T000000Z-000000")))
    assert {f.code for f in _verified(copy, room).findings if f.refuses} == {"statement.differs"}
