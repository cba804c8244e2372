"""A replica's card as plain data and back: Serve carries it from the replica to every router."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from engine.contract import EngineInfo
from engine.fleet.identity import Identity
from engine.fleet.roster import Card


def write_card(generation: str, info: EngineInfo, identity: Identity) -> dict[str, Any]:
    """What a replica publishes once it is ready."""
    return {"generation": generation, "info": asdict(info), "identity": asdict(identity)}


def read_card(key: str, node: str, published: dict[str, Any]) -> Card:
    """The card of replica `key` on `node`."""
    info = published["info"]
    return Card(
        key=key,
        node=node,
        generation=published["generation"],
        info=EngineInfo(**{**info, "languages": tuple(info["languages"])}),
        identity=Identity(**published["identity"]),
    )
