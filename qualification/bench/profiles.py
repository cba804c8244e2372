"""Load profiles: what a run sends, in which order, with which seeds, as data of the run.

`data/plan.json` holds the profiles of each tier; the run resolves them against the workload and copies the result
into `run.json`, so that a verifier can walk the same plan: request `index` of a round speaks entry `index mod
entries`, on walk `round x repeats + index div entries` of the seeds (`rotate`) or with the first seed (`first`).
Warm-up starts that same walk from its beginning. How requests meet the server is the business of `load`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from itertools import count
from pathlib import Path
from typing import Any, Literal

from qualification import schema, strictjson
from qualification.bench.load_kind import Load, LoadKind
from qualification.errors import InputError, UsageError
from qualification.paths import SAMPLES_DIRECTORY, data_file
from qualification.workload import Kind, WorkItem, Workload

PLAN = "plan.json"
ENDS, RATE = "EOS", "RATE"
_WALKS_A_ROUND = 5  # a round is what a killed run repeats


@dataclass(frozen=True, kw_only=True)
class Profile:
    """One load profile, resolved: the object of `run.json`'s `profiles`."""

    name: str
    title: str
    samples: str
    load: LoadKind
    concurrency: int
    rate_per_second: float | None
    rounds: int
    entries: tuple[str, ...]
    repeats: int
    stop: Literal["count", "duration"]
    seeds: Literal["rotate", "first"]
    warmup_requests: int
    minimum_seconds: float

    @property
    def requests_per_round(self) -> int:
        """Measured requests that a round has at least."""
        return len(self.entries) * self.repeats

    def load_for(self, turn: int) -> Load:
        """The load of round `turn`; an open load draws its arrivals from the round's number."""
        return Load(
            kind=self.load, concurrency=self.concurrency, rate_per_second=self.rate_per_second, arrival_seed=turn
        )

    def item(self, workload: Workload, *, turn: int, index: int) -> WorkItem:
        """What request `index` of round `turn` speaks."""
        entry = workload.entry(self.entries[index % len(self.entries)])
        walk = turn * self.repeats + index // len(self.entries)
        return WorkItem(entry=entry, seed=entry.seeds[0 if self.seeds == "first" else walk % len(entry.seeds)])

    def indices(self) -> Iterator[int]:
        """Measured request numbers of a round; without end where the clock decides."""
        return iter(range(self.requests_per_round)) if self.stop == "count" else count()

    def to_json(self) -> dict[str, Any]:
        """The object of `run.json`."""
        return {**asdict(self), "entries": list(self.entries)}


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Settings of a run that are not the plan: the object of `run.json`'s `parameters`. `sampling` is the wire object sent
    with each request, None to leave it to the subject's defaults."""

    timeout_seconds: float
    max_duration_seconds: float
    store_audio: Literal["all", "measured", "first", "none"]
    telemetry_interval_ms: int
    sampling: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What one tier's run does."""

    profiles: tuple[Profile, ...]
    parameters: Parameters

    @property
    def requests(self) -> int:
        """Requests that will be sent, warm-up included (where counts decide)."""
        return sum(profile.rounds * (profile.requests_per_round + profile.warmup_requests) for profile in self.profiles)


def load_plan(tier: str, workload: Workload, path: Path | None = None, *, rounds: int | None = None) -> Plan:
    """The plan of `tier`, resolved against `workload`; `unverified` runs the plan of `reference`.

    Args:
        rounds: split each profile that is there for its times into so many rounds; None: as the plan has them.

    Raises:
        InputError: not strict JSON, not of the schema, or asking for entries that the workload lacks.
    """
    path = path or data_file(PLAN)
    document = strictjson.load(path)
    schema.validate("plan", document, path.name)
    rules = document["tiers"]["reference" if tier == "unverified" else tier]
    profiles = [_profile(item, workload, path.name) for item in rules["profiles"]]
    return Plan(
        profiles=tuple(profile if rounds is None else _split(profile, workload, rounds) for profile in profiles),
        parameters=Parameters(**rules["parameters"]),
    )


def with_rate(plan: Plan, requests: int, workload: Workload) -> Plan:
    """The plan with a profile `RATE` after its `EOS`: the same sentences and load, at least `requests` of them, each with
    a seed of its own, in rounds.

    Raises:
        UsageError: the plan has no profile `EOS`, or the workload has fewer seeds than that.
    """
    ends = next((profile for profile in plan.profiles if profile.name == ENDS), None)
    if ends is None:
        raise UsageError(f"--eos-rate: the plan of this tier has no profile {ENDS}; its model's speech ends by no rule")
    walks = -(-requests // len(ends.entries))
    rounds = -(-walks // _WALKS_A_ROUND)
    repeats = -(-walks // rounds)
    seeds = min(len(workload.entry(name).seeds) for name in ends.entries)
    if rounds * repeats > seeds:
        raise UsageError(
            f"--eos-rate {requests} asks for {rounds * repeats} seeds a sentence and the workload has {seeds}; ask for at most "
            f"{seeds * len(ends.entries)}, or give a workload with more"
        )
    rate = replace(
        ends,
        name=RATE,
        title=f"natural ends, {rounds * repeats} seeds a sentence",
        samples=f"{SAMPLES_DIRECTORY}/{RATE.lower()}.jsonl",
        rounds=rounds,
        repeats=repeats,
        stop="count",
        seeds="rotate",
        minimum_seconds=0,
    )
    at = plan.profiles.index(ends) + 1
    return replace(plan, profiles=(*plan.profiles[:at], rate, *plan.profiles[at:]))


def is_timed(entries: Iterable[str], workload: Workload) -> bool:
    """Whether a profile is there for its times: it speaks bench entries alone. Others are there for their ends."""
    return all(workload.entry(name).kind is Kind.BENCH for name in entries)


def _profile(item: Mapping[str, Any], workload: Workload, name: str) -> Profile:
    values = dict(item)
    patterns = values.pop("entries")
    values["entries"] = tuple(_matching(patterns, workload, f"{name}: profile {item['name']}"))
    values["samples"] = f"{SAMPLES_DIRECTORY}/{item['name'].lower()}.jsonl"
    if (item["load"] == "poisson") != (item["rate_per_second"] is not None):
        raise InputError(f"{name}: profile {item['name']}: rate_per_second belongs to poisson and only there")
    return Profile(**values)


def _split(profile: Profile, workload: Workload, rounds: int) -> Profile:
    """The profile in `rounds` rounds that together ask for no less, where it is there for its times."""
    if not is_timed(profile.entries, workload):
        return profile
    repeats, seconds = profile.repeats * profile.rounds, profile.minimum_seconds * profile.rounds
    return replace(profile, rounds=rounds, repeats=-(-repeats // rounds), minimum_seconds=seconds / rounds)


def _matching(patterns: list[str], workload: Workload, name: str) -> Iterator[str]:
    for pattern in patterns:
        ids = [entry.id for entry in workload.entries if fnmatchcase(entry.id, pattern)]
        if not ids:
            raise InputError(f"{name}: no workload entry matches {pattern!r}; correct the pattern or the workload")
        yield from ids
