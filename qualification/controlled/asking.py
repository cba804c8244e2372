"""What both subjects are asked, as hashes that must be equal, and the sampling that is sent in full.

Sampling is normalised: every value is explicit in the request, so that no default of a server or of a checkpoint
decides. The hash of the requests is over text, description, language, seed, ceiling and sampling of each planned
request, warm-up included, in the order of the plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from qualification.bench.profiles import Profile
from qualification.digest import sha256_bytes
from qualification.evidence_view import EvidenceView
from qualification.strictjson import dumps_line
from qualification.workload import Workload

_STAGE: Final = {"strategy": "sample", "temperature": 0.9, "top_p": 1.0, "top_k": 50}
SAMPLING: Final[Mapping[str, Any]] = {**_STAGE, "repetition_penalty": 1.05, "predictor": dict(_STAGE)}


def hashes(evidence: EvidenceView) -> dict[str, str]:
    """SHA-256 of workload, load profiles, sampling and requests of one side."""
    run = evidence.run
    parameters = run["parameters"]
    profiles = [Profile(**{**item, "entries": tuple(item["entries"])}) for item in run["profiles"]]
    return {
        "workload": evidence.sha256("workload.json"),
        "profiles": _sha256(run["profiles"]),
        "sampling": _sha256(parameters["sampling"]),
        "requests": _sha256(list(_requests(profiles, evidence.workload, parameters))),
    }


def _requests(profiles: Sequence[Profile], workload: Workload, parameters: Mapping[str, Any]) -> Iterator[list[Any]]:
    asked = [parameters["max_duration_seconds"], parameters["sampling"]]
    for profile in profiles:
        for turn in range(profile.rounds):
            for kind, count in (("warmup", profile.warmup_requests), ("measure", profile.requests_per_round)):
                for index in range(count):
                    item = profile.item(workload, turn=turn, index=index)
                    entry = item.entry
                    spoken = [entry.text, entry.voice_description, entry.language_field, item.seed]
                    yield [profile.name, turn, kind, index, *spoken, *asked]


def _sha256(value: Any) -> str:
    return sha256_bytes(dumps_line(value))
