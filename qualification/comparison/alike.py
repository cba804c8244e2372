"""Is what two bundles measured alike enough to be compared, and in what does it differ?

Four aspects, each a flat list of fields: the machine, the workload with its load profiles, what was asked of the
sampler, and the tier. A field that differs is named with both values; whether it may differ is the caller's decision.

Not covered: two machines of one make that tell the same of themselves. Nothing in a bundle names the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from qualification import paths
from qualification.digest import sha256_bytes
from qualification.evidence_view import EvidenceView
from qualification.strictjson import dumps_line

Fields = dict[str, Any]
_MACHINE: Final = (
    "architecture", "system", "kernel", "cpu_model", "cpus", "cpus_usable", "cpu_quota", "cpu_governor", "memory_bytes",
    "memory_limit_bytes",
)  # fmt: skip
_DEVICE: Final = ("uuid", "name", "memory_bytes", "power_limit_milliwatts", "sm_clock_max_mhz")
_LOAD: Final = (
    "load", "concurrency", "rate_per_second", "rounds", "entries", "repeats", "stop", "seeds", "minimum_seconds",
    "warmup_requests",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One field of one aspect; the values as canonical JSON."""

    aspect: str
    field: str
    a: str
    b: str

    def __str__(self) -> str:
        return f"{self.aspect} {self.field}: {self.a} and {self.b}"


def differences(a: EvidenceView, b: EvidenceView) -> tuple[Difference, ...]:
    """Every field of the four aspects that two bundles do not share.

    Raises:
        BundleError, StrictJsonError, SchemaError: a document is missing or malformed.
    """
    return tuple(item for aspect, fields in ASPECTS.items() for item in _of_aspect(aspect, fields(a), fields(b)))


def subject_of(evidence: EvidenceView) -> Fields:
    """What ran: how it was started, what it says of itself, and the digests of image, source and weights."""
    run = evidence.run
    said = run["subject"]
    return {
        **{name: said[name] for name in ("kind", "model", "precision", "device")},
        "image": _image(said["image"]),
        "commit": run["source"]["commit"],
        "dirty": run["source"]["dirty"],
        "weights_sha256": _weights(evidence),
    }


def _of_aspect(aspect: str, a: Fields, b: Fields) -> Iterator[Difference]:
    for field in sorted(a.keys() | b.keys()):
        if field not in a or field not in b or a[field] != b[field]:
            yield Difference(aspect=aspect, field=field, a=_told(a, field), b=_told(b, field))


def _told(fields: Fields, field: str) -> str:
    return dumps_line(fields[field]).decode().strip()[:400] if field in fields else "absent"


def _machine(evidence: EvidenceView) -> Fields:
    environment = evidence.document(paths.ENVIRONMENT)
    cards = environment["accelerators"]
    return {
        **{name: environment["machine"][name] for name in _MACHINE},
        "driver": cards["driver"],
        "devices": [{name: device[name] for name in _DEVICE} for device in cards["devices"]],
    }


def _workload(evidence: EvidenceView) -> Fields:
    run = evidence.run
    loads = {f"{item['name']}.{name}": item[name] for item in run["profiles"] for name in _LOAD}
    return {"entries": evidence.sha256(paths.WORKLOAD), **loads}


def _sampling(evidence: EvidenceView) -> Fields:
    parameters = evidence.run["parameters"]
    asked = {name: parameters[name] for name in ("max_duration_seconds", "sampling")}
    return {**asked, "leaves_open": sorted(evidence.leaves_open - {"eos"})}


def _tier(evidence: EvidenceView) -> Fields:
    return {"tier": evidence.run["tier"]}


def _image(image: Mapping[str, str | None] | None) -> str | None:
    return None if image is None else image["config"] or image["platform"] or image["index"] or image["name"]


def _weights(evidence: EvidenceView) -> str | None:
    """One digest over the paths and digests of all weights; None where nobody could hash any."""
    files = evidence.document(paths.IDENTITY)["files"]
    weights = sorted([item["path"], item["sha256"]] for item in files if item["role"] == "weights" and item["sha256"])
    return sha256_bytes(dumps_line(weights)) if weights else None


ASPECTS: Final[Mapping[str, Callable[[EvidenceView], Fields]]] = {
    "machine": _machine,
    "workload": _workload,
    "sampling": _sampling,
    "tier": _tier,
}
