"""The whole path on two fakes: eight runs by turns, two bundles, one comparison; interrupted, resumed, refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from qualification import schema
from qualification.cli import main
from tests.qualification.controlled.room import compare_run, make_room, verify
from tests.qualification.desk import FAKE, Desk

ROOT = str(Path(__file__).resolve().parents[3])


def _json(place: Path) -> Any:
    return json.loads(place.read_bytes())


def test_eight_runs_by_turns_and_everything_is_sealed(room: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    names = {"a", "b", "schedule.json", "comparison.json", "manifest.json", "statement.dsse.json"}
    assert {place.name for place in room.out.iterdir()} == names
    schedule = _json(room.out / "schedule.json")
    turns = [(run["profile"], run["round"], run["subject"]) for run in schedule["runs"]]
    assert "".join(subject for _, _, subject in turns) == "abbaabba"
    assert {turn[:2] for turn in turns} == {("B1", 0), ("B1", 1), ("B3", 0), ("B3", 1)}
    assert all([attempt["outcome"] for attempt in run["attempts"]] == ["ok"] for run in schedule["runs"])
    assert schedule["hashes"]["a"] == schedule["hashes"]["b"]
    for side in "ab":
        run = _json(room.out / side / "run.json")
        assert (run["sessions"], run["parameters"]["sampling"]["temperature"]) == (4, 0.9)
        reasons = [_json(room.out / side / f"records/session-0{n}.json")["reason"] for n in (1, 2, 3, 4)]
        assert reasons == ["first", "turn", "turn", "turn"]
        assert _json(room.out / side / "summary.json")["verdict"]["outcome"] == "incomplete"
    comparison = _json(room.out / "comparison.json")
    assert {profile["sequence"] for profile in comparison["profiles"]} == {"ABBA"}
    assert {profile["order"] for profile in comparison["profiles"]} == {"alternating"}
    assert any("this design cannot tell" in line for line in comparison["headline"])
    assert verify(room, room.out, "--key", str(room.root / "key.pub"), "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    schema.validate("controlled-verification", answer, "answer")
    assert (answer["answer"], answer["a"]["answer"]) == ("sound", "incomplete")
    assert verify(room, room.out) == 0
    assert "every planned run is there once, in its turn" in capsys.readouterr().out


def test_a_comparison_that_was_killed_goes_on_with_the_run_that_was_cut_short(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = make_room(tmp_path)
    slow = f"{FAKE} --frame-seconds 0.03"
    command = [sys.executable, "-m", "qualification", "compare-run", "--a", f"command={slow}", "--b", f"command={FAKE}"]
    command += ["--model", str(desk.model), *desk.options, "--profiles", "B1,B3", "--out", str(desk.out)]
    run = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    half = desk.out / "a" / "journal" / "b1-1.jsonl"  # the fourth run: A's second round
    deadline = time.monotonic() + 60
    while not half.exists() or not half.stat().st_size:
        assert run.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(run.pid, signal.SIGKILL)
    run.wait(30)
    assert main(["compare-run", "--resume", str(desk.out), "--rounds", "2"]) == 2
    assert "leave --rounds out" in capsys.readouterr().err
    assert main(["compare-run", "--resume", str(desk.out)]) == 0
    said = capsys.readouterr().err
    assert "run 4 of 8" in said
    assert "run 3 of 8" not in said
    outcomes = [[a["outcome"] for a in run["attempts"]] for run in _json(desk.out / "schedule.json")["runs"]]
    assert outcomes == [["ok"], ["ok"], ["ok"], ["killed", "ok"], ["ok"], ["ok"], ["ok"], ["ok"]]
    session = _json(desk.out / "a/records/session-03.json")
    assert (session["reason"], session["set_aside"][0]["path"]) == ("resume", "abandoned/02/b1-1.jsonl")
    assert verify(desk, desk.out) == 0
    assert main(["compare-run", "--resume", str(desk.out)]) == 5
    assert "is sealed already" in capsys.readouterr().err


def test_a_run_that_fails_is_kept_and_tried_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The third run is B's second; its engine dies in that session alone, because a file told it to."""
    desk = make_room(tmp_path)
    script = tmp_path / "mortal.py"
    script.write_text(
        "import pathlib, runpy, sys\n"
        "count = pathlib.Path(sys.argv[1]); number = len(count.read_text()) if count.exists() else 0\n"
        "count.write_text('x' * (number + 1))\n"
        f"sys.argv = [{FAKE.split()[1]!r}] + (['--die-after', '1'] if number == 1 else [])\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    mortal = f"{sys.executable} {script} {tmp_path / 'count'}"
    assert compare_run(desk, b=mortal) == 4
    assert "go on with compare-run --resume" in capsys.readouterr().err
    assert not (desk.out / "manifest.json").exists()
    assert main(["compare-run", "--resume", str(desk.out)]) == 0
    [third] = [run for run in _json(desk.out / "schedule.json")["runs"] if run["number"] == 3]
    assert [attempt["outcome"] for attempt in third["attempts"]] == ["failed", "ok"]
    assert "engine process" in third["attempts"][0]["detail"]
    assert _json(desk.out / "b/records/interruption-02.json")["cause"] == "subject"
    assert verify(desk, desk.out) == 0


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (("--a", "engine,precision"), 2, "engine takes model=, precision=, device=, not 'precision'"),
        (("--a", "vllm"), 2, "names no subject"),
        (("--a", "image=assay/engine:1"), 2, "reference_by_tag"),
        (("--profiles", "B1,EOS"), 2, "no gate of the policy judges a load profile 'EOS'"),
        (("--rounds", "0"), 2, "--rounds 0"),
        (("--model", "/no/such"), 3, "/no/such"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    tmp_path: Path, options: tuple[str, ...], status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = make_room(tmp_path)
    assert compare_run(desk, *options) == status
    assert words in capsys.readouterr().err


def test_two_subjects_are_needed_and_a_new_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare-run", "--a", "engine"]) == 2
    assert "needs two subjects" in capsys.readouterr().err
    assert main(["compare-run", "--a", "engine", "--b", "engine", "--out", str(tmp_path)]) == 5
    assert main(["compare-run", "--resume", str(tmp_path)]) == 5
    assert "is no comparison that can go on" in capsys.readouterr().err
