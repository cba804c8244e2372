"""Fifth question: do gates, numbers and verdict follow from the raw files?

1. Each gate of the policy has exactly one result, in the policy's order, and no other gate has one; a selection names
   gates of the policy, in its order, and fewer than all.
2. Each result is what the gate says when it is evaluated again.
3. The summary holds every number of the metric table and no other, each with the table's derivation.
4. Each number is what its derivation yields from the files, digit for digit, with its n, bound and reason.
5. Verdict, standing of the profiles and limitations are what the files give.
6. The report is the one that the files give, where the verifier has the program that draws it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from qualification import paths, strictjson, summary
from qualification.evaluation import Gate, evaluate_all
from qualification.evidence_view import EvidenceView
from qualification.policy import Policy, parse_policy
from qualification.results import GateResult
from qualification.verify.findings import Finding

Report = Callable[[EvidenceView], str]


def check(evidence: EvidenceView, gates: Mapping[str, Gate], report: Report | None) -> Iterator[Finding]:
    """Findings of the six steps."""
    policy = parse_policy(evidence.document(paths.POLICY), paths.POLICY)
    yield from _selection(policy, evidence)
    results = evaluate_all(evidence, policy, gates)
    yield from _gates(results, evidence)
    yield from _summary(summary.build(evidence, policy, results), evidence.document(paths.SUMMARY))
    yield from _report(evidence, report)


def _selection(policy: Policy, evidence: EvidenceView) -> Iterator[Finding]:
    selected, ids = evidence.run["gates_selected"], [entry.id for entry in policy.gates]
    if selected is not None and (selected == ids or selected != [gate for gate in ids if gate in selected]):  # 1
        detail = "the selection is not a part of the policy's gates, each once, in its order"
        yield Finding(code="gates.selection", file=paths.RUN, detail=detail)


def _gates(results: tuple[GateResult, ...], evidence: EvidenceView) -> Iterator[Finding]:
    sealed = evidence.document(paths.GATES)["results"]
    names = [item["id"] for item in sealed]
    expected = {result.id: result.to_json() for result in results}
    for name in expected:  # 1
        if name not in names:
            yield Finding(code="gates.missing", file=paths.GATES, detail=f"gate {name} of the policy has no result")
    for name in sorted(set(names) - expected.keys()):
        yield Finding(code="gates.unknown", file=paths.GATES, detail=f"the policy has no gate {name}")
    if names != list(expected):
        yield Finding(code="gates.order", file=paths.GATES, detail="results are not the policy's gates, once, in order")
    for item in sealed:  # 2
        again = expected.get(item["id"], item)
        if not _same(item, again):
            detail = f"{item['id']}: evaluated again, {_difference(item, again)}"
            yield Finding(code="gates.differ", file=paths.GATES, detail=detail)


def _summary(again: Mapping[str, Any], sealed: Mapping[str, Any]) -> Iterator[Finding]:
    yield from _numbers(again["numbers"], sealed["numbers"])
    if not _same(sealed["verdict"], again["verdict"]):  # 5
        detail = f"recomputed, {_difference(sealed['verdict'], again['verdict'])}"
        yield Finding(code="summary.verdict-differs", file=paths.SUMMARY, detail=detail)
    for key in sorted(again.keys() - {"numbers", "verdict"}):
        if not _same(sealed[key], again[key]):
            yield Finding(code="summary.differs", file=paths.SUMMARY, detail=f"{key} is not what the files give")


def _numbers(again: list[dict[str, Any]], sealed: list[dict[str, Any]]) -> Iterator[Finding]:
    found = {item["id"]: item for item in sealed}
    expected = {item["id"]: item for item in again}
    for name in expected:  # 3
        if name not in found:
            yield Finding(code="summary.number-missing", file=paths.SUMMARY, detail=f"{name} must be there and is not")
    for name in sorted(found.keys() - expected.keys()):
        yield Finding(code="summary.number-unknown", file=paths.SUMMARY, detail=f"{name} is no number of this run")
    if [item["id"] for item in sealed] != list(expected):
        yield Finding(code="summary.differs", file=paths.SUMMARY, detail="numbers are not the table's, once, in order")
    for name in sorted(expected.keys() & found.keys()):  # 4
        yield from _number(found[name], expected[name])


def _number(sealed: Mapping[str, Any], again: Mapping[str, Any]) -> Iterator[Finding]:
    if sealed["derivation"] != again["derivation"]:
        detail = f"{sealed['id']}: derived otherwise than the metric table says"
        yield Finding(code="summary.derivation-differs", file=paths.SUMMARY, detail=detail)
    figures = [key for key in again if key != "derivation" and not _same(sealed[key], again[key])]
    if figures:
        detail = f"{sealed['id']}: " + ", ".join(f"{key} {sealed[key]!r} is {again[key]!r}" for key in figures)
        yield Finding(code="summary.number-differs", file=paths.SUMMARY, detail=detail)


def _report(evidence: EvidenceView, report: Report | None) -> Iterator[Finding]:
    if not evidence.exists(paths.REPORT):  # 6
        return
    if report is None:
        detail = "not drawn again: this verifier runs without the report's program"
        yield Finding(code="report.unchecked", file=paths.REPORT, detail=detail, refuses=False)
    elif paths.locate(evidence.root, paths.REPORT).read_bytes() != report(evidence).encode():
        yield Finding(code="report.differs", file=paths.REPORT, detail="not the report that the files give")


def _same(left: object, right: object) -> bool:
    """Equal as they are written: 1 and 1.0 differ."""
    return strictjson.dumps_line(left) == strictjson.dumps_line(right)


def _difference(sealed: Mapping[str, Any], again: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} is {again[key]!r}" for key in again if not _same(sealed[key], again[key]))
