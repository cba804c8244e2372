"""The whole path on the fake engine: qualify, seal, verify; each way to fail leaves a message and what was gathered."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from qualification.cli import main
from qualification.paths import data_file
from qualification.pinning import pin_model
from tests.qualification.fake_server import Behaviour, running
from tests.qualification.safetensors_files import write_sound

FAKE = f"{shlex.quote(sys.executable)} {shlex.quote(str(Path(__file__).with_name('fake_server.py')))}"


@dataclass(frozen=True, kw_only=True)
class Desk:
    """A small model with pins, and a plan and a policy small enough for a test."""

    root: Path
    model: Path
    options: tuple[str, ...]

    @property
    def out(self) -> Path:
        return self.root / "bundle"

    def qualify(self, *options: str) -> int:
        return main(["qualify", *self.options, "--out", str(self.out), *options])

    def fake(self, *fault: str) -> int:
        """Qualify the fake as if it ran the small model."""
        return self.qualify("--engine-command", f"{FAKE} {shlex.join(fault)}", "--model", str(self.model))

    def verify(self, *options: str) -> int:
        trust = ("--policy", str(self.root / "policy.json"), "--pins", str(self.root / "pins.json"))
        return main(["verify", str(self.out), *trust, *options])

    def json(self, path: str) -> Any:
        return json.loads((self.out / path).read_bytes())

    def outcomes(self) -> dict[str, str]:
        return {result["id"]: result["outcome"] for result in self.json("gates.json")["results"]}

    def lines(self, path: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.out / path).read_bytes().splitlines()]


def edited(source: Path, target: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    document = json.loads(source.read_bytes())
    change(document)
    target.write_text(json.dumps(document))
    return target


def small_plan(plan: dict[str, Any]) -> None:
    rules = plan["tiers"]["reference"]
    rules["profiles"] = [profile for profile in rules["profiles"] if profile["name"] != "B6"]
    for profile in rules["profiles"]:
        profile["warmup_requests"] = min(profile["warmup_requests"], 1)
        profile["repeats"] = 1 if profile["name"] in ("EOS", "SWITCH") else 2
        profile["entries"] = {"EOS": ["coverage-*"], "SWITCH": ["switch-de-en"]}.get(
            profile["name"], ["bench-zh-short"]
        )
        profile["seeds"] = "first" if profile["name"] == "B1" else "rotate"


def small_policy(policy: dict[str, Any]) -> None:
    rules = policy["tiers"]["reference"]
    rules["required"] = [
        gate for gate in rules["required"] if gate not in ("licences.environment", "bench.b6", "bench.b1", "bench.b3")
    ]  # the first hangs on the machine's packages, the others need more requests than a test sends
    rules["counts"] |= {"successes_per_profile": 1}


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the report out: drawing it twice a run is most of the time, and its own tests look at it."""
    for place in ("qualify", "cli"):
        monkeypatch.setattr(f"qualification.{place}.report_program", lambda: None)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    model = tmp_path / "model"
    write_sound(model / "model.safetensors")
    (model / "config.json").write_text('{"model_type": "small"}\n')
    pins = Path(shutil.copy(data_file("pins.json"), tmp_path))
    pin_model(
        model, tier="reference", model_id="example/small", licence="Apache-2.0", source="made by a test", pins_path=pins
    )
    plan = edited(data_file("plan.json"), tmp_path / "plan.json", small_plan)
    policy = edited(data_file("policy.json"), tmp_path / "policy.json", small_policy)
    options = ("--plan", str(plan), "--policy", str(policy), "--pins", str(pins))
    return Desk(root=tmp_path, model=model, options=options)


def test_a_good_engine_is_qualified_and_anybody_can_verify_it(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    private = desk.root / "key"
    assert main(["keygen", str(private)]) == 0
    capsys.readouterr()
    assert desk.qualify("--engine-command", FAKE, "--model", str(desk.model), "--key", str(private)) == 0
    shown = capsys.readouterr().out
    assert "Qualified in tier reference" in shown
    assert "Not performed:" in shown
    assert str(desk.out / "report.html") in shown
    outcomes = desk.outcomes()
    passed = ("identity.weights", "eos.coverage", "eos.rate", "audio.integrity", "audio.speech-present",
              "wire.stream-contract", "wire.reproducibility", "environment.captured")  # fmt: skip
    assert {gate: outcomes[gate] for gate in passed} == dict.fromkeys(passed, "passed")
    assert outcomes["bench.b6"] == outcomes["container.identity"] == "not_performed"
    assert desk.verify("--key", f"{private}.pub") == 0
    assert main(["keygen", str(desk.root / "other")]) == 0
    assert desk.verify("--key", str(desk.root / "other.pub")) == 11
    drawn = desk.root / "again.html"
    assert main(["report", str(desk.out), "--out", str(drawn)]) == 0
    assert drawn.read_bytes() == (desk.out / "report.html").read_bytes()
    assert desk.json("run.json")["subject"]["command"][0] == Path(sys.executable).name
    stored = [line for line in desk.lines("samples/eos.jsonl") if line["audio"]]
    assert len({line["workload_id"] for line in stored}) == len(stored) == 24


@pytest.mark.usefixtures("undrawn")
def test_a_bundle_can_be_signed_later_and_once(desk: Desk) -> None:
    assert main(["keygen", str(desk.root / "key")]) == 0
    assert desk.fake() == 0
    assert desk.verify() == 0
    assert main(["sign", str(desk.out), "--key", str(desk.root / "key")]) == 0
    assert desk.verify("--key", str(desk.root / "key.pub")) == 0
    assert main(["sign", str(desk.out), "--key", str(desk.root / "key")]) == 5


@pytest.mark.parametrize(
    ("fault", "gate"),
    [("never_ends", "eos.coverage"), ("gap", "wire.stream-contract"), ("silence", "audio.speech-present"),
     ("seed_ignored", "wire.reproducibility")],
)  # fmt: skip
@pytest.mark.usefixtures("undrawn")
def test_a_failed_gate_still_seals_a_bundle_that_says_so(
    desk: Desk, fault: str, gate: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert desk.fake("--fault", fault) in (7, 15)
    assert desk.outcomes()[gate] == "failed"
    assert desk.json("summary.json")["verdict"]["outcome"] == "not_qualified"
    assert gate in capsys.readouterr().out
    assert (desk.out / "manifest.json").exists()


@pytest.mark.usefixtures("undrawn")
def test_altered_weights_are_no_tier_and_never_qualified(desk: Desk) -> None:
    weights = desk.model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    assert desk.fake() == 7
    assert desk.json("run.json")["tier"] == "unverified"
    assert desk.outcomes()["identity.weights"] == "failed"
    assert desk.verify() == 7


@pytest.mark.usefixtures("undrawn")
def test_an_endpoint_without_weights_is_measured_and_never_qualified(desk: Desk) -> None:
    with running(Behaviour()) as server:
        assert desk.qualify("--endpoint", server.url) == 7
    assert (desk.json("run.json")["tier"], desk.json("run.json")["subject"]["kind"]) == ("unverified", "endpoint")
    assert not (desk.out / "telemetry.jsonl").exists()
    outcomes = desk.outcomes()
    assert (outcomes["identity.weights"], outcomes["eos.coverage"]) == ("not_performed", "passed")
    assert desk.verify() == 7


@pytest.mark.usefixtures("undrawn")
def test_a_server_that_dies_mid_stream_leaves_what_was_measured(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    assert desk.fake("--die-after", "9") == 4
    errors = capsys.readouterr().err
    assert "engine process" in errors
    assert "exit status 9" in errors
    assert str(desk.out) in errors
    told = desk.json("records/interruption.json")
    assert (told["cause"], told["stage"]) == ("subject", "measure")
    records = desk.lines("samples/eos.jsonl")
    lost = [line for line in records if line["outcome"] == "transport_error"]
    assert lost
    assert any(line["packets"] for line in lost)
    assert sum(line["outcome"] == "ok" for line in records) >= 6
    assert desk.verify() == 10


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("undrawn")
def test_an_interrupted_run_keeps_its_records_and_stops_the_engine(desk: Desk, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "qualification", "qualify", *desk.options, "--out", str(desk.out)]
    command += ["--engine-command", f"{FAKE} --frame-seconds 0.05", "--model", str(desk.model)]
    root = str(Path(__file__).resolve().parents[2])
    run = subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE, text=True)
    children: list[psutil.Process] = []
    deadline = time.monotonic() + 90
    while not (desk.out / "telemetry.jsonl").exists():
        assert time.monotonic() < deadline, "the run did not begin to measure"
        time.sleep(0.05)
    time.sleep(1.5)
    children = psutil.Process(run.pid).children(recursive=True)
    assert len(children) == 2
    os.kill(run.pid, number)
    errors = run.communicate(timeout=90)[1]
    assert run.returncode == 130
    assert "interrupted" in errors
    assert "Traceback" not in errors
    assert desk.json("records/interruption.json")["cause"] == "interrupted"
    assert desk.lines("samples/eos.jsonl")
    psutil.wait_procs(children, timeout=10)
    assert not any(child.is_running() for child in children)


@pytest.mark.usefixtures("undrawn")
def test_an_endpoint_that_is_down_is_told(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    with running(Behaviour()) as server:
        url = server.url
    assert desk.qualify("--endpoint", url) == 4
    assert "cannot connect" in capsys.readouterr().err
    assert desk.json("records/interruption.json")["stage"] == "launch"


@pytest.mark.usefixtures("undrawn")
def test_a_fault_of_the_harness_itself_is_recorded_too(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> str:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("qualification.qualify.report_program", lambda: broken)
    with pytest.raises(ZeroDivisionError):
        desk.fake()
    told = desk.json("records/interruption.json")
    assert (told["cause"], told["stage"]) == ("harness", "seal")
    assert not (desk.out / "manifest.json").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_real_engine_is_driven_by_the_same_harness(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.engine.tiny_checkpoint import write_tiny_checkpoint

    monkeypatch.setenv("ASSAY_THREADS", "1")  # a busy machine makes threads that wait for each other very slow

    def two_languages(plan: dict[str, Any]) -> None:
        small_plan(plan)
        plan["tiers"]["reference"]["parameters"]["max_duration_seconds"] = 2.0
        plan["tiers"]["reference"]["profiles"][0]["entries"] = ["coverage-en", "coverage-de"]

    plan = edited(data_file("plan.json"), desk.root / "two.json", two_languages)
    model = write_tiny_checkpoint(desk.root / "tiny")
    assert desk.qualify("--model", str(model), "--plan", str(plan)) == 7  # random weights: sound, and of no tier
    outcomes = desk.outcomes()
    assert outcomes["wire.stream-contract"] == outcomes["wire.reproducibility"] == "passed"
    assert outcomes["identity.weights"] == outcomes["audio.speech-present"] == "failed"


def test_an_output_directory_that_exists_is_refused_before_any_work(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def started(*_: object) -> None:
        pytest.fail("something was started")

    monkeypatch.setattr("qualification.run.started", started)
    desk.out.mkdir()
    assert desk.fake() == 5
    assert "exists already" in capsys.readouterr().err
    assert list(desk.out.iterdir()) == []


@pytest.mark.usefixtures("undrawn")
def test_an_engine_that_refuses_its_model_is_told_with_its_own_words(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    script = desk.root / "refuses.py"
    script.write_text("import sys; print('error: config.json lacks talker_config', file=sys.stderr); sys.exit(3)")
    assert desk.qualify("--engine-command", f"{sys.executable} {script}", "--model", str(desk.model)) == 4
    assert "config.json lacks talker_config" in capsys.readouterr().err
    assert (desk.out / "identity.json").exists()


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (("--model", "/no/such/model"), 3, "/no/such/model"),
        (("--endpoint", "localhost"), 2, "http://host:port"),
        (("--endpoint", "http://127.0.0.1:1", "--precision", "fp32"), 2, "--precision"),
        (("--policy", "/no/such/policy.json"), 3, "/no/such/policy.json"),
        (("--key", "/no/such/key"), 6, "/no/such/key"),
        (("--workload", "{plan}"), 3, "plan.json"),
        (("--plan", "/no/such/plan.json"), 3, "/no/such/plan.json"),
    ],
    ids=["model", "endpoint", "contradiction", "policy", "key", "workload", "plan"],
)
@pytest.mark.usefixtures("undrawn")
def test_bad_input_is_refused_with_a_message_and_a_status(
    desk: Desk, options: tuple[str, ...], status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [option.format(plan=desk.root / "plan.json") for option in options]
    assert desk.qualify(*given) == status
    assert words in capsys.readouterr().err


@pytest.mark.usefixtures("undrawn")
def test_the_answer_can_be_one_json_document(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.fake()
    capsys.readouterr()
    assert desk.verify("--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["answer"], answer["exit_code"]) == ("qualified", 0)


@pytest.mark.parametrize(
    "arguments", [[], ["qualify", "--no-such"], ["verify"], ["qualify", "--endpoint", "x", "--engine-command", "y"]]
)
def test_a_wrong_command_line_ends_with_usage(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


def test_help_lists_the_exit_statuses(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "10..15" in capsys.readouterr().out
