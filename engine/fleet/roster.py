"""Who is in the fleet, which slots are free, and who does not belong. No Ray here.

The first replica admitted of a generation sets what the generation is made of; one that differs is never given a
request and is named. Two generations stand side by side only while one replaces the other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from engine.contract import EngineCounters, EngineInfo
from engine.fleet.identity import Identity


@dataclass(frozen=True, kw_only=True)
class Card:
    """How a replica introduces itself. `key` is its name in the cluster, `generation` the deployment it came from."""

    key: str
    node: str
    generation: str
    info: EngineInfo
    identity: Identity


@dataclass(kw_only=True, eq=False)
class Member:
    """One admitted replica. `listed` is False once it drains or is gone; its streams may go on."""

    card: Card
    index: int
    listed: bool = True
    rests_until: float = 0.0  # monotonic seconds
    counters: EngineCounters = field(default_factory=EngineCounters)  # as last heard
    active: set[UUID] = field(default_factory=set)

    @property
    def free(self) -> int:
        open_to_requests = self.listed and time.monotonic() >= self.rests_until
        return self.card.info.max_concurrent_requests - len(self.active) if open_to_requests else 0


@dataclass(frozen=True, kw_only=True)
class Odd:
    """A replica that is not admitted, and what of it differs."""

    card: Card
    differs: tuple[str, ...]


class Roster:
    """Every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._members: dict[str, Member] = {}
        self._odd: dict[str, Odd] = {}
        self._gone = EngineCounters()  # of replicas that are no more

    @property
    def members(self) -> list[Member]:
        """Admitted replicas, those that drain included, by index."""
        with self._lock:
            return sorted(self._members.values(), key=lambda member: member.index)

    @property
    def odd(self) -> list[Odd]:
        with self._lock:
            return list(self._odd.values())

    @property
    def slots(self) -> int:
        """Slots that exist: all of listed replicas, and of draining ones those that a stream still holds."""
        with self._lock:
            return sum(
                member.card.info.max_concurrent_requests if member.listed else len(member.active)
                for member in self._members.values()
            )

    @property
    def counters(self) -> EngineCounters:
        """Sum over all replicas there ever were: it only grows."""
        with self._lock:
            return _sum([self._gone, *(member.counters for member in self._members.values())])

    def update(self, cards: Iterable[Card]) -> None:
        """Take in the present replicas: newcomers are admitted or found odd, absent ones are no longer listed."""
        present = {card.key: card for card in cards}
        with self._lock:
            self._odd = {key: odd for key, odd in self._odd.items() if key in present}
            for key, member in list(self._members.items()):
                member.listed = member.listed and key in present
                self._drop_if_done(member)
            for key, card in present.items():
                if key not in self._members and key not in self._odd:
                    self._receive(card)
            self._lock.notify_all()

    def lose(self, key: str) -> None:
        """A replica is known to be gone: it gets no more requests."""
        with self._lock:
            if member := self._members.get(key):
                member.listed = False
                self._drop_if_done(member)

    def rest(self, member: Member, seconds: float) -> None:
        """Give a replica no new request for a while."""
        with self._lock:
            member.rests_until = time.monotonic() + seconds

    def take(self, request_id: UUID, besides: frozenset[str] = frozenset()) -> Member | None:
        """Hold a slot of the replica with most free ones; None when none is free but on replicas `besides`."""
        with self._lock:
            open_ones = [m for m in self._members.values() if m.free > 0 and m.card.key not in besides]
            if not open_ones:
                return None
            chosen = max(open_ones, key=lambda member: (member.free, -member.index))
            chosen.active.add(request_id)
            return chosen

    def give_back(self, member: Member, request_id: UUID) -> None:
        """The request has left its replica."""
        with self._lock:
            member.active.discard(request_id)
            self._drop_if_done(member)

    def wait_for(self, count: int, seconds: float) -> bool:
        """Wait until `count` replicas are admitted or one is odd; False when the time was too short."""
        with self._lock:
            return self._lock.wait_for(lambda: len(self._members) >= count or bool(self._odd), seconds)

    def _receive(self, card: Card) -> None:
        peers = [m.card for m in self._members.values() if m.card.generation == card.generation and m.listed]
        differs = card.identity.differences(peers[0].identity) if peers else []
        if differs:
            self._odd[card.key] = Odd(card=card, differs=tuple(differs))
        else:
            taken = {member.index for member in self._members.values()}
            index = next(number for number in range(len(taken) + 1) if number not in taken)
            self._members[card.key] = Member(card=card, index=index)

    def _drop_if_done(self, member: Member) -> None:
        if not member.listed and not member.active and member.card.key in self._members:
            del self._members[member.card.key]
            self._gone = _sum([self._gone, member.counters])


def _sum(counters: Iterable[EngineCounters]) -> EngineCounters:
    found = list(counters)
    return EngineCounters(
        frame_steps=sum(one.frame_steps for one in found),
        rows_advanced=sum(one.rows_advanced for one in found),
        graph_replays=sum(one.graph_replays for one in found),
    )
