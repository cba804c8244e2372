"""What the fleet says of itself: GET /v1/fleet, the metrics of replicas, and the sentence of a readiness that fails."""

from __future__ import annotations

from typing import Literal

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from engine.fleet.roster import Card, Member, Roster
from engine.server.answers import Answer


class Digests(Answer):
    """Of the model's files together, of the engine's source, and of the image as declared, or null."""

    model: str
    engine_source: str
    image: str | None


class ReplicaAnswer(Answer):
    """One replica. `index` is the metrics' label, and null for one that is not admitted."""

    index: int | None
    key: str
    node: str
    generation: str
    state: Literal["serving", "draining", "odd"]
    slots: int
    active_requests: int
    digests: Digests
    differs_in: tuple[str, ...] = ()


class FleetAnswer(Answer):
    """GET /v1/fleet. `nodes` counts those on which a replica lives."""

    nodes: int
    slots: int
    replicas: tuple[ReplicaAnswer, ...]


def fleet_answer(roster: Roster) -> FleetAnswer:
    """The fleet as it is now."""
    replicas = [_member(member) for member in roster.members]
    replicas += [_answer(odd.card, state="odd", differs_in=odd.differs) for odd in roster.odd]
    return FleetAnswer(nodes=len({replica.node for replica in replicas}), slots=roster.slots, replicas=tuple(replicas))


def complaint(roster: Roster) -> str | None:
    """Which replicas do not belong to the fleet, and why; None when all do."""
    found = [
        f"replica {odd.card.key} on node {odd.card.node} differs in {', '.join(odd.differs)}" for odd in roster.odd
    ]
    return f"{'; '.join(found)}; give every node the same model and image" if found else None


def routes(roster: Roster) -> tuple[BaseRoute, ...]:
    """What the front door serves beside the server's own endpoints."""

    async def fleet(_: Request) -> Response:
        body = fleet_answer(roster).model_dump_json()
        return Response(body, headers={"cache-control": "no-store"}, media_type="application/json")

    return (Route("/v1/fleet", fleet, methods=["GET"]),)


class FleetCollector(Collector):
    """Metrics of replicas, labelled by index: few values, reused by successors."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster

    def collect(self) -> list[Metric]:
        members = self._roster.members
        counts = {"serving": 0, "draining": 0, "odd": len(self._roster.odd)}
        for member in members:
            counts["serving" if member.listed else "draining"] += 1
        replicas = GaugeMetricFamily("assay_replicas", "Replicas by state", labels=["state"])
        for state, count in counts.items():
            replicas.add_metric([state], count)
        return [
            replicas,
            _gauge("slots", "Slots of the replica", {m.index: m.card.info.max_concurrent_requests for m in members}),
            _gauge("active_requests", "Requests at the replica", {m.index: len(m.active) for m in members}),
            _counter("frame_steps", "Frame steps run", {m.index: m.counters.frame_steps for m in members}),
            _counter("rows_advanced", "Rows advanced", {m.index: m.counters.rows_advanced for m in members}),
        ]


def _member(member: Member) -> ReplicaAnswer:
    state: Literal["serving", "draining"] = "serving" if member.listed else "draining"
    return _answer(member.card, state=state, index=member.index, active=len(member.active))


def _answer(
    card: Card,
    *,
    state: Literal["serving", "draining", "odd"],
    index: int | None = None,
    active: int = 0,
    differs_in: tuple[str, ...] = (),
) -> ReplicaAnswer:
    identity = card.identity
    return ReplicaAnswer(
        index=index,
        key=card.key,
        node=card.node,
        generation=card.generation,
        state=state,
        slots=card.info.max_concurrent_requests,
        active_requests=active,
        digests=Digests(model=identity.model, engine_source=identity.engine_source, image=identity.image),
        differs_in=differs_in,
    )


def _gauge(name: str, text: str, values: dict[int, int]) -> Metric:
    family = GaugeMetricFamily(f"assay_replica_{name}", text, labels=["replica"])
    for index, value in values.items():
        family.add_metric([str(index)], value)
    return family


def _counter(name: str, text: str, values: dict[int, int]) -> Metric:
    family = CounterMetricFamily(f"assay_replica_{name}", text, labels=["replica"])
    for index, value in values.items():
        family.add_metric([str(index)], value)
    return family
