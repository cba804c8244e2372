"""The whole path on the fake engine: qualify, seal, verify; each way to fail leaves a message and what was gathered."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import psutil
import pytest

from qualification.bench.clock import Clock
from qualification.bench.target import parse_target
from qualification.cli import main
from qualification.fleet import ask_fleet, fleet_document
from qualification.paths import data_file
from tests.qualification.desk import FAKE, Desk, edited, small_plan
from tests.qualification.fake_server import Behaviour, running

FLEET: dict[str, Any] = {
    "nodes": 1,
    "slots": 8,
    "replicas": [
        {
            "index": 0,
            "key": "a1",
            "node": "n1",
            "generation": "g1",
            "state": "serving",
            "slots": 8,
            "active_requests": 0,
            "digests": {"model": "sha256:" + "0" * 64, "engine_source": "1" * 64, "image": None},
            "differs_in": [],
        }
    ],
}


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
    assert "Qualified" in desk.out.with_name("bundle.summary.md").read_text()
    suite = ElementTree.parse(desk.out.with_name("bundle.junit.xml")).getroot()[0]
    failed = list(outcomes.values()).count("failed")  # the required ones passed; a dirty tree may be among the others
    assert (suite.get("failures"), suite.get("tests")) == (str(failed), str(len(outcomes)))
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
def test_another_tier_than_the_one_asked_for_is_refused(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    assert desk.qualify("--engine-command", FAKE, "--model", str(desk.model), "--tier", "shape") == 3
    assert "--tier shape was asked for, and the files are of tier reference" in capsys.readouterr().err


def test_the_release_tier_needs_a_directory(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    assert desk.qualify("--tier", "release") == 2
    assert "name its directory with --model" in capsys.readouterr().err


@pytest.mark.usefixtures("undrawn")
def test_an_endpoint_without_weights_is_measured_and_never_qualified(desk: Desk) -> None:
    with running(Behaviour()) as server:
        assert desk.qualify("--endpoint", server.url) == 7
    assert not (desk.out / "records" / "fleet-01.json").exists()
    assert (desk.json("run.json")["tier"], desk.json("run.json")["subject"]["kind"]) == ("unverified", "endpoint")
    assert not (desk.out / "telemetry.jsonl").exists()
    outcomes = desk.outcomes()
    assert (outcomes["identity.weights"], outcomes["eos.coverage"]) == ("not_performed", "passed")
    assert desk.verify() == 7


@pytest.mark.usefixtures("undrawn")
def test_a_fleet_is_recorded_before_and_after_as_it_describes_itself(desk: Desk) -> None:
    with running(Behaviour(fleet=FLEET)) as server:
        assert desk.qualify("--endpoint", server.url) == 7
    record = desk.json("records/fleet-01.json")
    seen = [{name: value for name, value in one.items() if name != "at_ns"} for one in record["seen"]]
    without = {name: value for name, value in FLEET["replicas"][0].items() if name != "active_requests"}
    assert seen == [{**FLEET, "replicas": [without]}] * 2
    assert record["seen"][0]["at_ns"] < record["seen"][1]["at_ns"]
    assert desk.verify() == 7


@pytest.mark.parametrize("said", ["a fleet", {"nodes": 1}, {**FLEET, "nodes": "two"}, {**FLEET, "replicas": [{}]}])
def test_what_is_no_fleet_leaves_no_record(said: Any) -> None:
    with running(Behaviour(fleet=said)) as server:
        assert fleet_document("good-20260101-000000", 1, ask_fleet(parse_target(server.url), Clock())) is None


@pytest.mark.usefixtures("undrawn")
def test_a_server_that_dies_mid_stream_leaves_what_was_measured(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    assert desk.fake("--die-after", "9") == 4
    errors = capsys.readouterr().err
    assert "engine process" in errors
    assert "exit status 9" in errors
    assert str(desk.out) in errors
    told = desk.json("records/interruption-01.json")
    assert (told["cause"], told["stage"]) == ("subject", "measure")
    records = desk.lines("journal/eos-0.jsonl")
    lost = [line for line in records if line["outcome"] == "transport_error"]
    assert lost
    assert any(line["packets"] for line in lost)
    assert sum(line["outcome"] == "ok" for line in records) >= 6
    assert desk.verify() == 10


def _watched(telemetry: Path) -> bool:
    """Whether a sample shows the subject."""
    lines = telemetry.read_bytes().split(b"\n")[:-1] if telemetry.exists() else []
    return any(json.loads(line)["processes"] for line in lines)


@pytest.mark.usefixtures("undrawn")
def test_a_sampling_process_that_dies_stops_nothing_and_fails_its_gate(desk: Desk) -> None:
    def kill_sampler() -> None:
        while not _watched(desk.out / "journal" / "telemetry-01.jsonl"):
            time.sleep(0.02)
        [sampler] = [p for p in psutil.Process().children() if "qualification.sampler" in p.cmdline()]
        sampler.kill()

    with ThreadPoolExecutor(1) as beside:
        killed = beside.submit(kill_sampler)
        assert desk.fake("--frame-seconds", "0.02") == 7
        killed.result(60)
    gate = next(item for item in desk.json("gates.json")["results"] if item["id"] == "telemetry.spacing")
    assert gate["outcome"] == "failed"
    assert "telemetry process ended with status -9" in gate["detail"]
    assert desk.json("records/sampler-01.json")["ended"] == "crashed"
    assert len(desk.lines("telemetry.jsonl")) == desk.json("records/sampler-01.json")["samples"]
    assert desk.verify() == 7  # sound: it says itself what is missing


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("undrawn")
def test_an_interrupted_run_keeps_its_records_and_stops_the_engine(desk: Desk, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "qualification", "qualify", *desk.options, "--out", str(desk.out)]
    command += ["--engine-command", f"{FAKE} --frame-seconds 0.05", "--model", str(desk.model)]
    root = str(Path(__file__).resolve().parents[2])
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a background job is started deaf to it
    run = subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE, text=True, preexec_fn=heard)
    children: list[psutil.Process] = []
    deadline = time.monotonic() + 90
    while not _watched(desk.out / "journal" / "telemetry-01.jsonl"):
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
    assert desk.json("records/interruption-01.json")["cause"] == "interrupted"
    assert desk.lines("journal/eos-0.jsonl")
    psutil.wait_procs(children, timeout=10)
    assert not any(child.is_running() for child in children)


@pytest.mark.usefixtures("undrawn")
def test_an_endpoint_that_is_down_is_told(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    with running(Behaviour()) as server:
        url = server.url
    assert desk.qualify("--endpoint", url) == 4
    assert "cannot connect" in capsys.readouterr().err
    assert desk.json("records/interruption-01.json")["stage"] == "launch"


@pytest.mark.usefixtures("undrawn")
def test_a_fault_of_the_harness_itself_is_recorded_too(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> str:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("qualification.qualify.report_program", lambda: broken)
    with pytest.raises(ZeroDivisionError):
        desk.fake()
    told = desk.json("records/interruption-01.json")
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


@pytest.mark.parametrize("ending", ["summary.md", "junit.xml"])
def test_a_summary_that_exists_is_refused_before_any_work(
    desk: Desk, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.out.with_name(f"bundle.{ending}").write_text("of another run")
    assert desk.fake() == 5
    assert "exists already" in capsys.readouterr().err
    assert not desk.out.exists()


@pytest.mark.usefixtures("undrawn")
def test_a_model_of_links_is_followed_only_when_asked_and_has_no_tier(desk: Desk) -> None:
    linked = desk.root / "linked"
    linked.mkdir()
    for file in desk.model.iterdir():
        (linked / file.name).symlink_to(file)
    command = ("--engine-command", FAKE, "--model", str(linked))
    assert desk.qualify(*command, "--accept-symlinks") == 7
    identity = desk.json("identity.json")
    assert (identity["symlinks"], identity["tier"]) == ("accepted", "unverified")
    assert {item["outcome"] for item in identity["files"]} == {"matched"}
    assert desk.verify() == 7


def test_a_model_is_pinned_from_the_command_line(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    pins = desk.root / "pins.json"
    words = ["--model-id", "example/again", "--licence", "Apache-2.0", "--source", "made by a test"]
    assert main(["pin", str(desk.model), "--tier", "reference", *words, "--pins", str(pins)]) == 0
    assert "example/again, tier reference, 2 files" in capsys.readouterr().out
    assert "example/again" in {model["id"] for model in json.loads(pins.read_bytes())["models"]}
    assert main(["pin", str(desk.model), "--tier", "release", *words, "--pins", str(pins)]) == 3


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
        (("--image", "assay/engine:1"), 2, "reference_by_tag"),
        (("--image", "assay/engine"), 2, "reference_by_tag"),
        (("--image", "assay/engine@sha256:12"), 2, "reference_malformed"),
        (("--image", f"x/y@sha256:{'0' * 64}", "--model", "{plan}"), 2, "--model"),
        (("--container", "--device", "cuda"), 2, "--device"),
        (("--rounds", "0"), 2, "--rounds 0"),
        (("--policy", "/no/such/policy.json"), 3, "/no/such/policy.json"),
        (("--key", "/no/such/key"), 6, "/no/such/key"),
        (("--workload", "{plan}"), 3, "plan.json"),
        (("--plan", "/no/such/plan.json"), 3, "/no/such/plan.json"),
    ],
    ids=["model", "endpoint", "contradiction", "tag", "no-digest", "short-digest", "image-model", "image-device",
         "rounds", "policy", "key", "workload", "plan"],
)  # fmt: skip
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
