"""A run that was killed goes on, loses nothing and mixes nothing; and it goes on only as the run that it was."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from qualification import resume
from qualification.cli import main
from qualification.journal import Journal, Unit
from qualification.source_state import SourceState
from tests.qualification.desk import FAKE, Desk, edited, make_desk

ROOT = str(Path(__file__).resolve().parents[2])
SLOW = f"{FAKE} --frame-seconds 0.02"
pytestmark = pytest.mark.usefixtures("undrawn")


def _begun(desk: Desk) -> subprocess.Popen[str]:
    """A run in a process of its own that can be killed."""
    command = [sys.executable, "-m", "qualification", "qualify", *desk.options, "--out", str(desk.out)]
    command += ["--engine-command", SLOW, "--model", str(desk.model)]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)


def _wait_for(run: subprocess.Popen[str], path: Path, lines: int) -> None:
    """Until a file has so many lines; a run that ends first, or takes too long, fails the test and is stopped."""
    deadline = time.monotonic() + 60
    while not path.exists() or path.read_bytes().count(b"\n") < lines:
        if run.poll() is not None or time.monotonic() > deadline:
            run.kill()
            pytest.fail(f"{path.name} did not come to {lines} lines: {run.communicate()[1]}")
        time.sleep(0.01)


def _killed_in(desk: Desk, half: str, after: int) -> None:
    """Kill the run once the unit `half` has `after` finished requests."""
    run = _begun(desk)
    _wait_for(run, desk.out / "journal" / half, after)
    os.kill(run.pid, signal.SIGKILL)
    run.wait(30)
    assert run.stderr is not None
    run.stderr.close()


def _resume(desk: Desk, *options: str) -> int:
    return main(["qualify", "--resume", str(desk.out), *options])


def _counts(desk: Desk) -> Counter[tuple[Any, ...]]:
    keys = ("profile", "phase", "round", "index", "workload_id", "seed", "outcome", "samples", "pcm_sha256")
    files = sorted((desk.out / "samples").iterdir())
    lines = [json.loads(line) for path in files for line in path.read_bytes().splitlines()]
    return Counter(tuple(line[key] for key in keys) for line in lines)


def test_a_killed_run_goes_on_and_equals_one_in_one_piece(
    desk: Desk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _killed_in(desk, "b1-0.jsonl", 1)
    engine = next(event["pid"] for event in desk.lines("journal/events.jsonl") if event["event"] == "subject")
    assert psutil.pid_exists(engine)  # it outlived the harness
    assert desk.verify() == 10
    assert _resume(desk) == 0
    assert "ended before its time" not in capsys.readouterr().err
    assert not psutil.pid_exists(engine) or psutil.Process(engine).status() == psutil.STATUS_ZOMBIE
    assert desk.verify() == 0
    assert not (desk.out / "journal").exists()
    whole = make_desk(tmp_path / "whole")
    assert whole.qualify("--engine-command", FAKE, "--model", str(whole.model)) == 0
    assert _counts(desk) == _counts(whole)
    assert len(list((desk.out / "audio").iterdir())) == len(list((whole.out / "audio").iterdir()))
    end, session = desk.json("records/interruption-01.json"), desk.json("records/session-02.json")
    assert (end["cause"], end["stage"], session["reason"], desk.json("run.json")["sessions"]) == (
        "killed", "measure", "resume", 2,
    )  # fmt: skip
    [half] = session["set_aside"]
    assert (half["profile"], half["round"], half["path"]) == ("B1", 0, "abandoned/01/b1-0.jsonl")
    assert len(desk.lines(half["path"])) == half["requests"] >= 1
    roles = {item["path"]: item["role"] for item in desk.json("manifest.json")["files"]}
    assert roles[half["path"]] == "abandoned"
    limits = {item["code"]: item["text"] for item in desk.json("summary.json")["limitations"]}
    assert "once and went on: killed at" in limits["interrupted"]
    assert limits["interrupted"] in desk.out.with_name("bundle.summary.md").read_text().replace("\\", "")
    assert "Gathered **in 2 sessions, ended early 1×: killed**." in desk.out.with_name("bundle.summary.md").read_text()
    kinds = [phase["name"] for phase in desk.json("phases.json")["phases"] if phase["name"].startswith("cut short")]
    assert len(kinds) <= 1  # the warm-up, where it had ended


def test_a_rate_goes_on_from_its_last_whole_round(desk: Desk) -> None:
    asked = Desk(root=desk.root, model=desk.model, options=(*desk.options, "--eos-rate", "144"))
    _killed_in(asked, "rate-1.jsonl", 2)
    first = (desk.out / "journal" / "rate-0.done.jsonl").read_bytes()
    assert _resume(desk) == 0
    assert desk.verify() == 0
    rate = next(profile for profile in desk.json("run.json")["profiles"] if profile["name"] == "RATE")
    assert (rate["rounds"], rate["repeats"], len(rate["entries"])) == (2, 3, 24)
    kept = [line["request_id"] for line in desk.lines("samples/rate.jsonl")]
    assert {json.loads(line)["request_id"] for line in first.splitlines()} <= set(kept)
    measured = [line for line in desk.lines("samples/rate.jsonl") if line["phase"] == "measure"]
    assert len({(line["workload_id"], line["seed"]) for line in measured}) == len(measured) == 144
    bound = next(gate for gate in desk.json("gates.json")["results"] if gate["id"] == "eos.bound")
    assert (bound["outcome"], bound["n"], bound["observed"]) == ("inconclusive", 144, 0.0)
    assert [unit["profile"] for unit in desk.json("records/session-02.json")["set_aside"]] == ["RATE"]
    samplers = [desk.json(f"records/sampler-{number:02}.json") for number in (2,)]
    assert [(record["number"], record["fault"]) for record in samplers] == [(2, None)]
    assert "Claim made: coverage of 24 languages" in desk.out.with_name("bundle.summary.md").read_text()


def test_killed_twice_and_interrupted_once(desk: Desk) -> None:
    _killed_in(desk, "eos-0.jsonl", 3)
    assert desk.json("journal/start.json")["options"]["engine_command"] == shlex.split(SLOW)
    run = subprocess.Popen(
        [sys.executable, "-m", "qualification", "qualify", "--resume", str(desk.out)],
        cwd=ROOT, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    _wait_for(run, desk.out / "journal" / "b1-0.jsonl", 1)
    os.kill(run.pid, signal.SIGTERM)
    assert "go on with --resume" in run.communicate(timeout=60)[1]
    assert run.returncode == 130
    assert _resume(desk) == 0
    assert desk.verify() == 0
    assert [desk.json(f"records/interruption-0{n}.json")["cause"] for n in (1, 2)] == ["killed", "interrupted"]
    aside = [desk.json(f"records/session-0{n}.json")["set_aside"] for n in (1, 2, 3)]
    assert [[unit["profile"] for unit in units] for units in aside] == [[], ["EOS"], ["B1"]]


def test_a_run_that_failed_while_sealing_is_sealed_without_the_engine(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise ZeroDivisionError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr("qualification.qualify.report_program", lambda: broken)
        with pytest.raises(ZeroDivisionError):
            desk.fake()
    assert desk.json("records/interruption-01.json")["stage"] == "seal"
    before = (desk.out / "samples" / "eos.jsonl").read_bytes()

    def started(*_: object) -> None:
        pytest.fail("something was started")

    monkeypatch.setattr("qualification.run.started", started)
    assert _resume(desk) == 0
    assert (desk.out / "samples" / "eos.jsonl").read_bytes() == before
    assert desk.json("run.json")["sessions"] == 1
    assert desk.verify() == 0


def test_a_sealed_run_and_a_strange_directory_do_not_go_on(
    desk: Desk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert desk.fake_with("--gates", "bench.b1") == 9
    assert _resume(desk) == 5
    assert "is sealed already" in capsys.readouterr().err
    assert main(["qualify", "--resume", str(tmp_path)]) == 5
    assert "holds no journal/start.json" in capsys.readouterr().err
    assert main(["qualify", "--resume", str(desk.out), "--out", str(tmp_path / "x")]) == 2


@pytest.fixture(scope="module")
def halted(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A run that ended when its engine died."""
    desk = make_desk(tmp_path_factory.mktemp("halted"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qualification.qualify.report_program", lambda: None)
        assert desk.fake("--die-after", "9") == 4
    return desk


@pytest.fixture
def again(halted: Desk, tmp_path: Path) -> Desk:
    """A copy of it to try with. Its inputs lie where they lay."""
    shutil.copytree(halted.out, tmp_path / "bundle")
    return Desk(root=tmp_path, model=halted.model, options=halted.options)


def _edited(name: str, change: Callable[[Any], None]) -> Callable[[Desk, Desk], list[str]]:
    def options(halted: Desk, again: Desk) -> list[str]:
        return [f"--{name}", str(edited(_of(halted, name), again.root / f"{name}.json", change))]

    return options


def _of(halted: Desk, name: str) -> Path:
    return Path(dict(zip(halted.options[::2], halted.options[1::2], strict=True))[f"--{name}"])


def _other_model(halted: Desk, again: Desk) -> list[str]:
    model = again.root / "model"
    shutil.copytree(halted.model, model)
    (model / "config.json").write_text('{"model_type": "smaller"}\n')
    return ["--model", str(model), "--engine-command", FAKE]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (_edited("policy", lambda d: d["tiers"]["reference"]["counts"].update(successes_per_profile=2)), "the policy is"),
        (_edited("pins", lambda d: d["models"].pop(0)), "the pins is another one"),
        (_edited("plan", lambda d: d["tiers"]["reference"]["profiles"].pop()), "the plan is another one"),
        (lambda *_: ["--rounds", "2"], "--rounds is 2, it was None"),
        (lambda *_: ["--gates", "bench.b1"], "--gates is ['bench.b1'], it was []"),
        (lambda *_: ["--engine-command", f"{FAKE} --slots 7"], "--engine-command is"),
    ],
    ids=["policy", "pins", "plan", "rounds", "gates", "engine-command"],
)  # fmt: skip
def test_another_run_is_refused_before_anything_is_touched(
    halted: Desk, again: Desk, given: Callable[..., list[str]], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(again.out.rglob("*"))
    assert main(["qualify", "--resume", str(again.out), *given(halted, again)]) == 3
    said = capsys.readouterr().err
    assert words in said
    assert "Bring back what it was begun with" in said
    assert sorted(again.out.rglob("*")) == before


def test_another_workload_is_refused(halted: Desk, again: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    workload = edited(again.out / "workload.json", again.root / "w.json", lambda d: d["entries"][0]["seeds"].reverse())
    assert _resume(again, "--workload", str(workload)) == 3
    assert "the workload is another one" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("source_state", lambda: SourceState(commit="f" * 40, dirty=False), "the source is commit ffffffffffff, clean"),
        ("capture_environment", None, "environment.json: machine.cpus is 999"),
        ("identify", None, "licences.json:"),
        ("subject_document", None, "subject.precision is 'int8'"),
    ],
    ids=["source", "machine", "licences", "subject"],
)
def test_another_world_is_refused(
    again: Desk,
    place: str,
    value: Any,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from qualification import run

    real = getattr(run, place)

    def other(*arguments: Any, **named: Any) -> Any:
        document = real(*arguments, **named)
        if place == "capture_environment":
            document["machine"]["cpus"] = 999
        elif place == "identify":
            document.licences["model_files"][0]["expression"] = "GPL-3.0-only"
        else:
            document["precision"] = "int8"
        return document

    monkeypatch.setattr(run, place, value or other)
    start = json.loads((again.out / "journal" / "start.json").read_bytes())
    start["options"]["engine_command"] = shlex.split(FAKE)  # one that does not die
    (again.out / "journal" / "start.json").write_text(json.dumps(start))
    assert _resume(again) == 3
    assert words in capsys.readouterr().err
    assert list((again.out / "journal").glob("*.done.jsonl")) == []


def test_another_model_is_refused(halted: Desk, again: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    start = json.loads((again.out / "journal" / "start.json").read_bytes())
    start["options"]["engine_command"] = shlex.split(FAKE)
    (again.out / "journal" / "start.json").write_text(json.dumps(start))
    assert _resume(again, *_other_model(halted, again)) == 3
    assert "identity.json: files[config.json]" in capsys.readouterr().err


def test_two_processes_cannot_go_on_with_one_run(again: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    held = Journal(again.out)
    assert _resume(again) == 5
    assert "another process is writing it" in capsys.readouterr().err
    held.close()


def test_a_torn_line_is_counted_and_left_out(again: Desk) -> None:
    half = again.out / "journal" / "eos-0.jsonl"
    whole = half.read_bytes()
    half.write_bytes(whole + b'{"audio":nu')
    with (again.out / "journal" / "events.jsonl").open("ab") as events:
        events.write(b'{"event":"sta')
    journal = Journal(again.out)
    resume.recover(journal)
    [aside] = journal.pending("set_aside")
    assert (aside["unit"]["torn_bytes"], aside["unit"]["requests"]) == (11, whole.count(b"\n"))
    assert (again.out / "abandoned" / "01" / "eos-0.jsonl").read_bytes() == whole
    assert not journal.done(Unit(profile="EOS", round=0))
    journal.close()


def test_after_a_restart_of_the_machine_the_calendar_sets_the_clock(again: Desk) -> None:
    journal = Journal(again.out)
    clock, kept = resume.clock_of(journal)
    assert (clock.zero_ns, kept) == (journal.start["zero_ns"], "continued")
    journal.start = {**journal.start, "zero_ns": journal.start["zero_ns"] + 10**13}  # as if it counted anew
    moved, kept = resume.clock_of(journal)
    assert kept == "wall"
    assert abs(moved.now_ns() - clock.now_ns()) < 1e9
    journal.start = {**journal.start, "zero_utc": "2100-01-01T00:00:00Z"}
    with pytest.raises(resume.ResumeRefused, match="set its clock"):
        resume.clock_of(journal)
    journal.close()
