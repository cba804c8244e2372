"""The summary: every number derived, none missing, standing and limitations from the files."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import pytest

from qualification import schema, strictjson, summary
from qualification.derivation import evaluate
from qualification.evaluation import evaluate_all
from qualification.evidence_view import EvidenceView
from qualification.gates.table import GATES
from qualification.metrics import metrics_for
from qualification.policy import parse_policy
from qualification.results import Derivation
from qualification.tamper.good import Good


@pytest.fixture
def view(good_bundle: Good) -> EvidenceView:
    """The good bundle, freshly opened."""
    return EvidenceView(good_bundle.root)


def _build(view: EvidenceView, **counts: float) -> dict[str, Any]:
    document = copy.deepcopy(view.document("policy.json"))
    document["tiers"]["reference"]["counts"].update(counts)
    policy = parse_policy(document)
    return summary.build(view, policy, evaluate_all(view, policy, GATES))


def test_sealed_summary_is_what_the_files_give(view: EvidenceView) -> None:
    again = _build(view)
    assert strictjson.dumps(again) == (view.root / "summary.json").read_bytes()
    schema.validate("summary", again, "summary.json")


def test_every_number_has_a_derivation_that_yields_it(view: EvidenceView) -> None:
    for number in view.document("summary.json")["numbers"]:
        found = evaluate(Derivation(**number["derivation"]), view)
        assert (found.value, found.n, found.upper95) == (number["value"], number["n"], number["upper95"]), number["id"]
        assert (number["reason"] is None) == (number["value"] is not None and number["upper95"] is not None)


def test_metrics_are_a_function_of_the_plan(view: EvidenceView) -> None:
    ids = [metric.id for metric in metrics_for(view.run, ["en", "tr"])]
    assert [name for name, times in Counter(ids).items() if times > 1] == []
    for profile in ("eos", "b1", "b3", "b6"):
        for quantity in ("rtf", "ttfa", "wall", "underrun"):
            for estimator in ("median", "mean", "p95", "p99", "max"):
                assert f"{profile}.{quantity}.{estimator}" in ids
    for name in ("b1.rtf.aggregate", "b1.failed", "b1.failure_rate", "b1.gpu.energy", "run.ends.tr.natural"):
        assert name in ids
    fewer = {**view.run, "profiles": view.run["profiles"][:1]}
    assert not any(name.startswith("b1.") for name in (metric.id for metric in metrics_for(fewer, ["en"])))


def test_known_numbers(view: EvidenceView) -> None:
    values = {item["id"]: item for item in view.document("summary.json")["numbers"]}
    assert values["b1.requests"]["value"] == 6
    assert values["b1.warmup"]["value"] == 1
    assert values["b1.rtf.median"]["value"] == pytest.approx(0.0965 / 0.32, abs=1e-6)
    assert values["b1.rtf.p95"] | {"title": ""} == values["b1.rtf.p95"] | {"title": "", "value": None, "n": 6}
    assert values["b1.rtf.p95"]["reason"] == "too_few_samples"
    assert values["b1.audio"]["value"] == pytest.approx(6 * 0.32)
    assert values["b1.rtf.aggregate"]["value"] == pytest.approx(values["b1.scenario_wall"]["value"] / (6 * 0.32))
    assert values["run.gates.passed"]["value"] == 17
    assert values["b1.cpu.energy"]["value"] > 0
    assert 100 <= values["b1.gpu.power.mean"]["value"] <= values["b1.gpu.power.peak"]["value"] == 106


def test_standing(view: EvidenceView) -> None:
    assert {item["standing"] for item in _build(view)["profiles"]} == {"qualifying"}
    short = {item["name"]: item for item in _build(view, successes_per_profile=7)["profiles"]}
    assert short["B3"]["standing"] == "qualifying"
    assert short["B1"] == {
        "name": "B1",
        "standing": "informative",
        "reasons": ["6 successes, the tier asks for 7"],
    }
    assert "s measured, the tier asks for 600 s" in _build(view, seconds_per_profile=600)["profiles"][0]["reasons"][0]
    cold = {item["name"]: item["reasons"] for item in _build(view, warmup_per_slot=1)["profiles"]}
    assert cold["REPEAT"] == ["0 warm-up requests in round 0, the tier asks for 1"]
    assert cold["B6"] == []


def test_limitations_follow_from_the_files(view: EvidenceView) -> None:
    def codes() -> list[str]:
        return [item["code"] for item in _build(view)["limitations"]]

    assert codes() == ["tier_reference", "coverage_is_no_rate", "ending_is_not_speech", "one_machine"]
    view.run["source"] = {"commit": None, "dirty": None}
    assert "source_not_pinned" in codes()
    view.__dict__.update(telemetry=(), moments=())
    assert "no_energy_counter" in codes()
    assert "informative_profile" in [item["code"] for item in _build(view, successes_per_profile=99)["limitations"]]
