"""What the front door answers at /v1/fleet is what the harness keeps as evidence."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

from engine.fleet.report import complaint, fleet_answer
from engine.fleet.roster import Card, Roster
from qualification.fleet import _OF_REPLICA, fleet_document
from tests.engine.fleet.test_roster import card


def whole(key: str, *, image: str) -> Card:
    found = card(key, image="sha256:" + image * 64)
    return replace(found, identity=replace(found.identity, engine_source="1" * 64))


def roster() -> Roster:
    found = Roster()
    found.update([whole("a", image="0"), whole("b", image="0"), whole("c", image="1")])
    found.take(uuid4())
    found.update([whole("b", image="0"), whole("c", image="1")])
    return found


def test_serving_draining_and_odd_replicas_are_listed() -> None:
    found = fleet_answer(roster())
    assert [(one.key, one.index, one.state, one.active_requests) for one in found.replicas] == [
        ("a", 0, "draining", 1), ("b", 1, "serving", 0), ("c", None, "odd", 0),
    ]  # fmt: skip
    assert (found.nodes, found.slots) == (1, 3)


def test_the_complaint_names_replica_node_and_difference() -> None:
    assert complaint(roster()) == (
        "replica c on node n differs in image digest; give every node the same model and image"
    )
    assert complaint(Roster()) is None


def test_the_harness_can_keep_it() -> None:
    said = fleet_answer(roster()).model_dump(mode="json")
    replicas = [{name: one[name] for name in _OF_REPLICA} for one in said["replicas"]]
    assert fleet_document("good-20260101-000000", 1, {"at_ns": 0, **said, "replicas": replicas}) is not None
