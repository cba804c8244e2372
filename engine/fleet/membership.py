"""Where Serve's router, which Serve makes by itself, tells this process of the replicas. Its router is copied by value, so it keeps nothing."""

from __future__ import annotations

from collections.abc import Callable

from engine.fleet.roster import Card

_changed: list[Callable[[list[Card]], None]] = []
_died: list[Callable[[str], None]] = []


class ReplicaGone(Exception):
    """The chosen replica left before the request reached it."""


def listen(on_change: Callable[[list[Card]], None], on_death: Callable[[str], None]) -> None:
    """Hear of every change of the deployment that this process has a handle to, and of replicas found dead, by key."""
    _changed.append(on_change)
    _died.append(on_death)


def changed(cards: list[Card]) -> None:
    """These are the replicas now."""
    for on_change in _changed:
        on_change(cards)


def died(key: str) -> None:
    """A call found this replica dead."""
    for on_death in _died:
        on_death(key)
