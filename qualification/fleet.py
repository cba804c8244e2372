"""What a subject made of several engines says of itself at `/v1/fleet`: nodes, replicas, digests, at two moments.

Not of the wire contract: a subject that does not answer there is one engine, and leaves no record. What it says is a
claim; no gate believes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qualification import schema
from qualification.bench.clock import Clock
from qualification.bench.target import Target
from qualification.capabilities import ask
from qualification.errors import SchemaError, StrictJsonError, SubjectError

PATH = "/v1/fleet"
_OF_REPLICA = ("index", "key", "node", "generation", "state", "slots", "digests", "differs_in")


def fleet_path(number: int) -> str:
    """Where the record of a session's fleet lies."""
    return f"records/fleet-{number:02}.json"


def ask_fleet(target: Target, clock: Clock) -> dict[str, Any] | None:
    """The fleet as it is now: an item of `seen`; None where the subject does not say, or says something else there."""
    at_ns = clock.now_ns()
    try:
        answer = ask(target, PATH, clock)
        if answer.status != 200:
            return None
        document = answer.json()
        return {
            "at_ns": at_ns,
            "nodes": document["nodes"],
            "slots": document["slots"],
            "replicas": [{name: replica[name] for name in _OF_REPLICA} for replica in document["replicas"]],
        }
    except (SubjectError, StrictJsonError, KeyError, TypeError):
        return None


def fleet_document(run_id: str, number: int, *seen: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The record of session `number`; None where nothing was seen, or what was seen is no fleet of this form."""
    document = {
        "schema": schema.urn("fleet"),
        "run_id": run_id,
        "number": number,
        "seen": [dict(item) for item in seen if item is not None],
    }
    try:
        schema.validate("fleet", document, fleet_path(number))
    except SchemaError:
        return None
    return document
