"""The plan as data: what it asks for, and how a profile walks its entries and seeds."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from qualification import schema
from qualification.bench.profiles import Plan, load_plan, with_rate
from qualification.errors import InputError, UsageError
from qualification.paths import data_file
from qualification.policy import load_policy
from qualification.workload import Kind, load_workload

WORKLOAD = load_workload()


@pytest.fixture(params=["reference", "release", "shape"])
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def plan(tier: str, path: Path | None = None) -> Plan:
    return load_plan(tier, WORKLOAD, path)


def test_every_profile_meets_the_counts_of_its_tier(tier: str) -> None:
    counts = load_policy().rules_for(tier).counts
    for profile in plan(tier).profiles:
        if profile.name.startswith("B"):
            assert profile.requests_per_round * profile.rounds >= max(60, counts.successes_per_profile)
            assert profile.minimum_seconds * profile.rounds >= counts.seconds_per_profile
            assert profile.warmup_requests >= counts.warmup_for(profile.concurrency)


@pytest.mark.parametrize(("tier", "draws"), [("reference", 72), ("release", 598)])
def test_the_eos_profile_covers_24_languages_with_distinct_draws(tier: str, draws: int) -> None:
    eos = next(profile for profile in plan(tier).profiles if profile.name == "EOS")
    items = [eos.item(WORKLOAD, turn=0, index=index) for index in eos.indices()]
    assert len({item.entry.language for item in items}) == 24
    assert len({(item.entry.id, item.seed) for item in items}) == len(items) >= draws


def test_rounds_split_the_load_profiles_and_nothing_else(tier: str) -> None:
    counts = load_policy().rules_for(tier).counts
    for before, after in zip(plan(tier).profiles, load_plan(tier, WORKLOAD, rounds=6).profiles, strict=True):
        if not before.name.startswith("B"):
            assert after == before
            continue
        assert after.rounds == 6
        assert 0 <= after.requests_per_round * 6 - before.requests_per_round <= 6 * len(after.entries)
        assert after.minimum_seconds * 6 >= counts.seconds_per_profile
        assert after.requests_per_round * 6 >= counts.successes_per_profile


def test_the_reference_plan_repeats_requests_alone() -> None:
    alone = next(profile for profile in plan("reference").profiles if profile.concurrency == 1)
    items = [alone.item(WORKLOAD, turn=0, index=index) for index in alone.indices()]
    assert len({(item.entry.id, item.seed) for item in items}) < len(items)


def test_the_resolved_profiles_are_what_run_json_takes(tier: str) -> None:
    properties = schema.document_schema("run")["properties"]["profiles"]["items"]["properties"]
    for profile in plan(tier).profiles:
        assert profile.to_json().keys() == properties.keys()


def test_seeds_rotate_over_walks_and_rounds() -> None:
    eos = next(profile for profile in plan("reference").profiles if profile.name == "EOS")
    entry = WORKLOAD.of_kind(Kind.COVERAGE)[1]
    assert [eos.item(WORKLOAD, turn=0, index=1 + 24 * walk).seed for walk in range(3)] == list(entry.seeds[:3])
    assert eos.item(WORKLOAD, turn=1, index=1).seed == entry.seeds[3]


def test_a_duration_profile_goes_on() -> None:
    b1 = next(profile for profile in plan("release").profiles if profile.name == "B1")
    assert len(list(islice(b1.indices(), 1_000))) == 1_000


def test_unverified_runs_the_plan_of_reference() -> None:
    assert plan("unverified") == plan("reference")


def changed(tmp_path: Path, change: Any) -> Path:
    document = json.loads(data_file("plan.json").read_bytes())
    change(document["tiers"]["reference"])
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda tier: tier["profiles"][0].update(entries=["nothing-*"]), "nothing-"),
        (lambda tier: tier["profiles"][0].update(rate_per_second=3), "rate_per_second"),
        (lambda tier: tier["profiles"][0].update(load="poisson"), "rate_per_second"),
        (lambda tier: tier["profiles"][0].update(concurrency=0), "concurrency"),
        (lambda tier: tier["parameters"].update(telemetry_interval_ms=500), "telemetry_interval_ms"),
        (lambda tier: tier["profiles"][0].update(extra=1), "extra"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(tmp_path: Path, change: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        plan("reference", changed(tmp_path, change))


@pytest.mark.parametrize("requests", [1, 24, 25, 169, 598, 600])
@pytest.mark.parametrize("rated", ["reference", "release"])
def test_a_rate_is_drawn_over_every_language_with_a_seed_of_its_own_for_each_request(requests: int, rated: str) -> None:
    before = plan(rated)
    after = with_rate(before, requests, WORKLOAD)
    rate = after.profiles[1]
    assert (after.profiles[0], *after.profiles[2:]) == before.profiles
    assert (rate.name, rate.samples, rate.stop) == ("RATE", "samples/rate.jsonl", "count")
    items = [rate.item(WORKLOAD, turn=turn, index=index) for turn in range(rate.rounds) for index in rate.indices()]
    draws = {(item.entry.id, item.seed) for item in items}
    assert len(draws) == len(items) == rate.rounds * rate.requests_per_round
    assert requests <= len(items) < requests + 24 * rate.rounds
    assert {item.entry.language for item in items} == set(load_policy().rules_for(rated).limits.eos.languages)
    assert rate.requests_per_round <= 120  # a killed run repeats no more than that


def test_six_hundred_requests_bound_the_rate_and_come_in_rounds() -> None:
    rate = with_rate(plan("reference"), 600, WORKLOAD).profiles[1]
    assert (rate.rounds, rate.repeats, rate.rounds * rate.requests_per_round) == (5, 5, 600)


def test_a_rate_that_the_seeds_do_not_reach_is_refused_with_the_most_that_there_is() -> None:
    with pytest.raises(UsageError, match="at most 600"):
        with_rate(plan("reference"), 601, WORKLOAD)


def test_a_tier_without_natural_ends_has_no_rate() -> None:
    with pytest.raises(UsageError, match="no profile EOS"):
        with_rate(plan("shape"), 600, WORKLOAD)
