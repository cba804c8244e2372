"""The two things that one can do: review a sealed bundle and add the record, or ask everything again and compare.

Neither touches a sealed file, gate or verdict.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from qualification import paths, signing, strictjson
from qualification.audio_review import layer, record
from qualification.audio_review.differing import MODELS, differences
from qualification.audio_review.policy import parse
from qualification.audio_review.record import Request
from qualification.errors import BundleError
from qualification.evidence_view import EvidenceView
from qualification.results import Outcome
from qualification.verify import structure

COMPARED: Final = ("run_id", "manifest_sha256", "models", "recogniser", "subject", "repeatable", "clips", "seams")


def attach(evidence: EvidenceView, request: Request, key: Ed25519PrivateKey | None) -> tuple[str, dict[str, Any]]:
    """Review the bundle, add the record as a layer, and return the layer's directory and the record.

    Raises:
        BundleError: the bundle is not as it was sealed, or stored no utterance.
    """
    _sound(evidence)
    made = record.make(evidence, request)
    data = strictjson.dumps(made)
    name = layer.name_of(data)
    strictjson.write_once(evidence.root / name / layer.RECORD, data)
    if key is not None:
        envelope = signing.sign(strictjson.dumps(layer.statement(made)), key)
        strictjson.write(evidence.root / name / paths.STATEMENT, envelope)
    return name, made


def ask_again(evidence: EvidenceView, request: Request) -> dict[str, list[str]]:
    """Layer -> what differs when everything is asked again, under that layer's own policy instead of the request's.

    Raises:
        BundleError: the bundle is not as it was sealed, or holds no audio review; else as `layer.read` does.
    """
    _sound(evidence)
    names = sorted(layer.files_by_layer(evidence))
    if not names:
        raise BundleError("the bundle holds no audio review; make one with `audio-review` first")
    found = {}
    for name in names:
        told = layer.read(evidence, name)
        left = request.without | {item["name"] for item in told["absent"]}  # what it never had is not compared
        again = record.make(evidence, dataclasses.replace(request, policy=parse(told["policy"]), without=left))
        found[name] = [*_figures(told, again), *_outcomes(told["checks"], again["checks"])]
    return found


def table(made: Mapping[str, Any]) -> list[str]:
    """A line a check, then one that counts the outcomes."""
    checks = made["checks"]
    width = max(len(check["id"]) for check in checks)
    lines = [f"{check['outcome']:13} {check['id']:{width}}  n={check['n']:<5} {check['detail']}" for check in checks]
    counts = {outcome: sum(1 for check in checks if check["outcome"] == outcome) for outcome in Outcome}
    return [*lines, ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in counts.items() if count)]


def _figures(told: Mapping[str, Any], again: Mapping[str, Any]) -> list[str]:
    return list(
        differences({key: told[key] for key in COMPARED}, {key: again[key] for key in COMPARED}, tolerance=MODELS)
    )


def _outcomes(told: Sequence[Mapping[str, Any]], again: Sequence[Mapping[str, Any]]) -> list[str]:
    one, other = ({check["id"]: check["outcome"] for check in checks} for checks in (told, again))
    return list(differences(one, other, tolerance=0.0, place="checks"))


def _sound(evidence: EvidenceView) -> None:
    broken = [dataclasses.astuple(finding)[1:3] for finding in structure.check(evidence) if finding.refuses]
    if broken:
        path, detail = broken[0]
        raise BundleError(f"{path}: {detail}; review only a bundle that verifies")
