"""Free slots, draining, resting, and replicas that do not belong."""

from __future__ import annotations

from uuid import uuid4

from engine.contract import EngineInfo
from engine.fleet.identity import Identity
from engine.fleet.roster import Card, Member, Roster


def card(key: str, *, slots: int = 2, generation: str = "one", weights: str = "00", image: str | None = None) -> Card:
    info = EngineInfo(model="m", device="cpu", precision="fp32", max_concurrent_requests=slots, max_codec_frames=1_500)
    identity = Identity(model_files={"model.safetensors": weights}, engine_source="s", image=image)
    return Card(key=key, node="n", generation=generation, info=info, identity=identity)


def taken(roster: Roster) -> str | None:
    member = roster.take(uuid4())
    return member.card.key if member else None


def hold(roster: Roster, besides: frozenset[str] = frozenset()) -> Member:
    member = roster.take(uuid4(), besides)
    assert member is not None
    return member


def test_the_replica_with_most_free_slots_is_taken_until_all_are_full() -> None:
    roster = Roster()
    roster.update([card("a", slots=1), card("b", slots=3)])
    assert roster.slots == 4
    assert [taken(roster) for _ in range(5)] == ["b", "b", "a", "b", None]


def test_a_slot_comes_back() -> None:
    roster = Roster()
    roster.update([card("a", slots=1)])
    request_id = uuid4()
    member = roster.take(request_id)
    assert member is not None
    assert taken(roster) is None
    roster.give_back(member, request_id)
    assert taken(roster) == "a"


def test_a_replica_passed_over_is_not_taken() -> None:
    roster = Roster()
    roster.update([card("a"), card("b")])
    assert hold(roster, frozenset("a")).card.key == "b"
    assert roster.take(uuid4(), frozenset("ab")) is None


def test_a_draining_replica_counts_only_the_slots_that_streams_hold() -> None:
    roster = Roster()
    roster.update([card("a"), card("b")])
    request_id = uuid4()
    draining = roster.take(request_id)
    assert draining is not None
    roster.update([card("b")])
    assert roster.slots == 3
    assert [taken(roster) for _ in range(3)] == ["b", "b", None]
    roster.give_back(draining, request_id)
    assert roster.slots == 2
    assert [member.card.key for member in roster.members] == ["b"]


def test_a_lost_replica_stays_lost_while_the_cluster_still_lists_it() -> None:
    roster = Roster()
    roster.update([card("a"), card("b")])
    hold(roster)
    roster.lose("a")
    roster.update([card("a"), card("b")])
    assert {taken(roster) for _ in range(3)} == {"b", None}


def test_a_resting_replica_keeps_its_slots_and_gets_nothing() -> None:
    roster = Roster()
    roster.update([card("a")])
    roster.rest(roster.members[0], 60)
    assert (roster.slots, taken(roster)) == (2, None)
    roster.rest(roster.members[0], 0)
    assert taken(roster) == "a"


def test_a_successor_gets_the_free_index() -> None:
    roster = Roster()
    roster.update([card("a"), card("b"), card("c")])
    roster.update([card("b"), card("c"), card("d")])
    assert [(member.index, member.card.key) for member in roster.members] == [(0, "d"), (1, "b"), (2, "c")]


def test_the_odd_one_is_named_and_gets_nothing_until_it_leaves() -> None:
    roster = Roster()
    roster.update([card("a", slots=1), card("b", weights="ff", image="sha256:1")])
    assert [(odd.card.key, odd.differs) for odd in roster.odd] == [
        ("b", ("model file model.safetensors", "image digest"))
    ]
    assert [taken(roster) for _ in range(2)] == ["a", None]
    roster.update([card("a", slots=1)])
    assert roster.odd == []


def test_another_generation_may_differ_while_it_replaces_the_first() -> None:
    roster = Roster()
    roster.update([card("a"), card("b", generation="two", weights="ff")])
    assert roster.odd == []
    roster.update([card("a"), card("b", generation="two", weights="ff"), card("c", generation="two", weights="aa")])
    assert [odd.card.key for odd in roster.odd] == ["c"]
