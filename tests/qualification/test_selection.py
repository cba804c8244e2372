"""A subset of the gates: what it measures, what it says, and how it ends."""

from __future__ import annotations

import json

import pytest

from qualification.bench.profiles import load_plan
from qualification.errors import UsageError
from qualification.policy import load_policy
from qualification.selection import gates_of_profiles, narrowed, select_gates
from qualification.workload import load_workload
from tests.qualification.desk import Desk


def test_the_order_is_the_policys_and_all_is_no_subset() -> None:
    policy = load_policy()
    every = [entry.id for entry in policy.gates]
    assert select_gates(("bench.b3", "eos.rate"), policy) == ("eos.rate", "bench.b3")
    assert select_gates((), policy) is None
    assert select_gates(reversed(every), policy) is None


@pytest.mark.parametrize(("asked", "words"), [(("bench.b9",), "no gate 'bench.b9'"), (("",), "no gate ''"),
                                              (("eos.rate", "eos.rate"), "twice")])  # fmt: skip
def test_what_cannot_be_selected(asked: tuple[str, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        select_gates(asked, load_policy())


def test_each_load_profile_has_its_gate_beside_those_that_need_no_request() -> None:
    gates = gates_of_profiles(("B1", "B6"), load_policy())
    assert {"bench.b1", "bench.b6", "identity.weights", "environment.captured"} <= set(gates)
    assert "bench.b3" not in gates
    with pytest.raises(UsageError, match="no gate of the policy judges a load profile 'EOS'"):
        gates_of_profiles(("EOS",), load_policy())


def test_only_what_the_gates_read_is_measured() -> None:
    plan = load_plan("reference", load_workload())
    assert [profile.name for profile in narrowed(plan, ("eos.rate", "bench.b3")).profiles] == ["EOS", "B3"]
    assert [profile.name for profile in narrowed(plan, ("identity.weights", "bench.b3")).profiles] == ["B3"]
    for whole in (None, ("bench.b1", "wire.stream-contract"), ("identity.weights",)):
        assert narrowed(plan, whole) == plan
    shape = load_plan("shape", load_workload())
    assert narrowed(shape, ("eos.rate",)) == shape  # nothing would be left to run


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(("policy_asks", "status"), [(False, 9), (True, 7)])
def test_a_subset_is_incomplete_and_its_exit_status_tells_whether_it_fell_short(
    desk: Desk, policy_asks: bool, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    if policy_asks:
        policy = json.loads((desk.root / "policy.json").read_bytes())
        policy["tiers"]["reference"]["required"].append("bench.b1")  # two requests cannot answer it
        (desk.root / "policy.json").write_text(json.dumps(policy))
    assert desk.fake_with("--gates", "bench.b1,identity.config") == status
    told = desk.json("summary.json")["verdict"]
    assert (told["outcome"], desk.json("run.json")["gates_selected"]) == ("incomplete", ["identity.config", "bench.b1"])
    assert "Incomplete in tier reference" in capsys.readouterr().out
    results = {item["id"]: item for item in desk.json("gates.json")["results"]}
    assert results["identity.config"]["outcome"] == "passed"
    left = [item for item in results.values() if item["reason_code"] == "not_selected"]
    assert {item["outcome"] for item in left} == {"not_performed"}
    assert len(left) == len(results) - 2
    assert desk.verify() == status


@pytest.mark.usefixtures("undrawn")
def test_one_profile_is_run_for_its_gate_alone(desk: Desk) -> None:
    assert desk.fake_with("--gates", "bench.b1") == 9
    assert [profile["name"] for profile in desk.json("run.json")["profiles"]] == ["B1"]
    assert [path.name for path in (desk.out / "samples").iterdir()] == ["b1.jsonl"]


def test_an_unknown_gate_is_refused_before_any_work(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    assert desk.fake_with("--gates", "bench.b1,speed") == 2
    assert "the policy has no gate 'speed'; it has identity.weights" in capsys.readouterr().err
    assert not desk.out.exists()
