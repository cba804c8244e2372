"""Does a request sound the same alone and beside others? As data, for one subject, from the files of one bundle.

A request that was sent alone (concurrency 1) is the reference for every other measured request of the same text, voice
description, language field and seed. Hashes say whether the samples are equal; where both utterances are stored their
distance is computed as well, sample by sample without any shift, because the wire aligns samples; lengths are always
compared. Repeats of the reference alone show what the subject does to itself. A pure function of the bundle; it judges
nothing: sums in another order may be other sums.

Not covered: whether a difference can be heard.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qualification import paths, schema
from qualification.bench.raw import RequestRecord
from qualification.clip import wav_header
from qualification.evidence_view import EvidenceView

Samples = npt.NDArray[np.int64]
_HEADER: Final = len(wav_header(0))
_DECIBEL_DIGITS: Final = 2
_Asked = tuple[str, str, str, int]


@dataclass(frozen=True, kw_only=True)
class Distance:
    """Between two utterances, over the samples that both have.

    Attributes:
        samples: how many both have; differing: how many of them differ; max_abs: largest difference, of 32,768.
        snr_db: energy of the reference over that of the difference, in decibels; None where one of them has none.
    """

    samples: int
    differing: int
    max_abs: int
    snr_db: float | None


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One request beside the same request alone. `distance` None: not both are stored."""

    profile: str
    concurrency: int
    round: int
    workload_id: str
    seed: int
    request_id: str
    reference_id: str
    equal: bool
    samples: int
    reference_samples: int
    distance: Distance | None


def pairs(evidence: EvidenceView) -> tuple[Pair, ...]:
    """Every pair, by profile in the order of the plan; none where the subject takes no seed."""
    if "seed" in evidence.leaves_open:
        return ()
    alone = _references(evidence)
    return tuple(
        _pair(evidence, record, alone[asked])
        for profile in evidence.run["profiles"]
        for record in evidence.records(profile=profile["name"])
        if record.ok and (asked := _asked(evidence, record)) in alone and alone[asked].request_id != record.request_id
    )


def document(evidence: EvidenceView) -> dict[str, Any]:
    """The document `batch-invariance`.

    Raises:
        BundleError, StrictJsonError, SchemaError: a file is missing or malformed.
    """
    found = pairs(evidence)
    subject = evidence.run["subject"]
    names = dict.fromkeys(pair.profile for pair in found)
    return {
        "schema": schema.urn("batch-invariance"),
        "run_id": evidence.run["run_id"],
        "subject": {name: subject[name] for name in ("model", "precision", "device")},
        "reason": None if found else "seed_not_controlled" if "seed" in evidence.leaves_open else "nothing_shared",
        "profiles": [_profile(name, [pair for pair in found if pair.profile == name]) for name in names],
        "pairs": [asdict(pair) for pair in found],
    }


def distance(reference: Samples, other: Samples) -> Distance:
    """The distance of two utterances, integer samples [n] each."""
    both = min(reference.size, other.size)
    apart = other[:both] - reference[:both]
    signal, noise = _energy(reference[:both]), _energy(apart)
    return Distance(
        samples=both,
        differing=int(np.count_nonzero(apart)),
        max_abs=int(np.abs(apart).max(initial=0)),
        snr_db=round(10 * math.log10(signal / noise), _DECIBEL_DIGITS) if signal and noise else None,
    )


def _references(evidence: EvidenceView) -> dict[_Asked, RequestRecord]:
    """The first success of each request that was sent alone."""
    found: dict[_Asked, RequestRecord] = {}
    for record in sorted(evidence.records(), key=lambda record: (record.profile, record.round, record.index)):
        if record.ok and record.concurrency == 1:
            found.setdefault(_asked(evidence, record), record)
    return found


def _asked(evidence: EvidenceView, record: RequestRecord) -> _Asked:
    entry = evidence.workload.entry(record.workload_id)
    return entry.text, entry.voice_description, entry.language_field, record.seed


def _pair(evidence: EvidenceView, record: RequestRecord, reference: RequestRecord) -> Pair:
    return Pair(
        profile=record.profile,
        concurrency=record.concurrency,
        round=record.round,
        workload_id=record.workload_id,
        seed=record.seed,
        request_id=record.request_id,
        reference_id=reference.request_id,
        equal=record.pcm_sha256 == reference.pcm_sha256,
        samples=record.samples,
        reference_samples=reference.samples,
        distance=_stored_distance(evidence, record, reference),
    )


def _stored_distance(evidence: EvidenceView, record: RequestRecord, reference: RequestRecord) -> Distance | None:
    if record.audio is None or reference.audio is None:
        return None
    return distance(_samples(evidence, reference.audio), _samples(evidence, record.audio))


def _samples(evidence: EvidenceView, path: str) -> Samples:
    evidence.clip(path)  # an exact WAV, or a refusal
    data = paths.locate(evidence.root, path).read_bytes()[_HEADER:]
    return np.frombuffer(data, dtype="<i2").astype(np.int64)


def _energy(samples: Samples) -> int:
    """Sum of squares. In 64-bit integers, which hold it for more than an hour of sound at full scale."""
    return int(np.dot(samples, samples))


def _profile(name: str, found: list[Pair]) -> Mapping[str, Any]:
    levels = sorted(pair.distance.snr_db for pair in found if pair.distance and pair.distance.snr_db is not None)
    return {
        "profile": name,
        "concurrency": found[0].concurrency,
        "pairs": len(found),
        "equal": sum(pair.equal for pair in found),
        "same_length": sum(pair.samples == pair.reference_samples for pair in found),
        "with_audio": sum(pair.distance is not None for pair in found),
        "snr_db_least": levels[0] if levels else None,
        "max_abs_most": max((pair.distance.max_abs for pair in found if pair.distance), default=None),
        "length_difference_most": max(_length_differences(found)),
    }


def _length_differences(found: list[Pair]) -> Iterator[int]:
    return (abs(pair.samples - pair.reference_samples) for pair in found)
