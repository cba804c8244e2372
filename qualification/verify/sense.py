"""Plausibility of what the summary and the gates say, whatever the raw files hold.

1. Of one quantity: least <= median <= p95 <= p99 <= largest, and no estimate above its own upper bound.
2. Mean power <= peak power.
3. Explanations and limitations are sentences, not placeholders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from qualification import paths
from qualification.evidence_view import EvidenceView
from qualification.verify.findings import Finding

_LADDER: Final = ("least", "min", "median", "p95", "p99", "max", "most")
_PLACEHOLDER: Final = re.compile(
    r"\W*|.*\b(todo|tbd|fixme|xxx+|lorem ipsum|placeholder|fill (this )?in|to be (done|determined|defined))\b.*"
    r"|\W*(n/?a|none|nil|null|unknown|test|foo|bar|limitation|reason|text|string)\W*",
    re.IGNORECASE | re.DOTALL,
)
_TOLERANCE: Final = 1.0 + 1e-9  # of products of rounded numbers


def check(evidence: EvidenceView) -> Iterator[Finding]:
    """Findings of the three steps."""
    numbers = evidence.document(paths.SUMMARY)["numbers"]
    values = {item["id"]: item["value"] for item in numbers if item["value"] is not None}
    for detail in (*_ladders(values), *_bounds(numbers)):
        yield Finding(code="summary.order", file=paths.SUMMARY, detail=detail)
    for profile in evidence.run["profiles"]:
        for detail in _power(profile["name"].lower(), values):
            yield Finding(code="summary.power", file=paths.SUMMARY, detail=detail)
    for path, text in _sentences(evidence):
        if _PLACEHOLDER.fullmatch(text):
            yield Finding(code="wording.placeholder", file=path, detail=f"{text[:80]!r} says nothing")


def _ladders(values: Mapping[str, float]) -> Iterator[str]:
    ladders: dict[str, dict[str, float]] = {}
    for name, value in values.items():  # 1
        stem, _, rung = name.rpartition(".")
        if rung in _LADDER:
            ladders.setdefault(stem, {})[rung] = value
    for stem, rungs in sorted(ladders.items()):
        ordered = [rungs[rung] for rung in _LADDER if rung in rungs]
        if any(left > right for left, right in pairwise(ordered)):
            yield f"{stem}: its percentiles are not in order"


def _bounds(numbers: list[Mapping[str, Any]]) -> Iterator[str]:
    for item in numbers:
        if item["value"] is not None and item["upper95"] is not None and item["value"] > item["upper95"]:
            yield f"{item['id']}: lies above its own upper bound"


def _power(name: str, values: Mapping[str, float]) -> Iterator[str]:
    mean, peak = values.get(f"{name}.gpu.power.mean"), values.get(f"{name}.gpu.power.peak")  # 2
    if mean is None or peak is None:
        return
    if mean > peak * _TOLERANCE:
        yield f"{name}: mean power {mean} W above peak power {peak} W"


def _sentences(evidence: EvidenceView) -> Iterator[tuple[str, str]]:
    for result in evidence.document(paths.GATES)["results"]:  # 3
        for key in ("detail", "needed", "owner"):
            if result[key] is not None:
                yield paths.GATES, result[key]
    for limitation in evidence.document(paths.SUMMARY)["limitations"]:
        yield paths.SUMMARY, limitation["text"]
        yield paths.SUMMARY, limitation["owner"]
    for waiver in evidence.document(paths.POLICY)["waivers"]:
        yield paths.POLICY, waiver["why"]
        yield paths.POLICY, waiver["who"]
