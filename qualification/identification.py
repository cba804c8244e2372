"""What a subject is made of, as two documents: its model files, hashed and judged, and the licences of all its parts.

The tier follows from the hashes. Of a process the harness's own environment is read, of an image what its interpreter
would import, of an endpoint nothing: nobody can look inside.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qualification import identity, licences
from qualification.inputs import Inputs
from qualification.run_record import roots, today


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Where to look. `metadata` None: no Python environment can be read; empty: the harness's own is the subject's."""

    model: Path | None
    metadata: tuple[Path, ...] | None = ()


@dataclass(frozen=True, kw_only=True)
class Identification:
    """The documents `identity.json` and `licences.json`, the tier, and what to tell about each."""

    tier: str
    identity: dict[str, Any]
    licences: dict[str, Any]

    @property
    def sentence(self) -> str:
        return str(self.identity["sentence"])

    @property
    def read(self) -> str:
        counts = (len(self.licences[part]) for part in ("distributions", "model_files"))
        return "{} distributions, {} model files read".format(*counts)


def identify(inputs: Inputs, parts: Parts) -> Identification:
    """Hash, judge and read.

    Raises:
        InputError: the model directory cannot be used.
    """
    links = inputs.options.accept_symlinks
    found = identity.survey(parts.model, inputs.pins, accept_symlinks=links) if parts.model else ()
    judgement = identity.judge(found, inputs.pins, accept_symlinks=links)
    rules = licences.LicenceRules.from_policy(inputs.policy.document, today())
    models = _model_licences(parts.model, judgement, rules) if parts.model else ()
    return Identification(
        tier=judgement.tier,
        identity=identity.identity_document(inputs.run_id, judgement, accept_symlinks=links),
        licences=licences.licences_document(inputs.run_id, _distributions(parts, rules), models, rules),
    )


def _distributions(parts: Parts, rules: licences.LicenceRules) -> Sequence[licences.LicenceRecord]:
    if parts.metadata is None:
        return ()
    if parts.metadata:
        return licences.distribution_licences([str(place) for place in parts.metadata], (), rules)
    return licences.distribution_licences(licences.subject_path(Path(sys.executable)), roots(), rules)


def _model_licences(
    model: Path, judgement: identity.Judgement, rules: licences.LicenceRules
) -> Sequence[licences.LicenceRecord]:
    weights = [item.path for item in judgement.findings if item.found and identity.role_of(item.path) == "weights"]
    matched = None if judgement.tier == identity.UNVERIFIED else judgement.model
    return licences.model_licences(model, matched, weights, rules)
