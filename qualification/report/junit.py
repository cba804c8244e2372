"""Gate results as JUnit XML, for dashboards that know tests only.

A dashboard has fewer words than a gate. Passed is passed; failed is a failure; a gate that could not be evaluated is an
error. Inconclusive, not performed and not applicable are failures where the tier requires the gate, because nothing
checked is not passed, and skipped with their reason elsewhere.
"""

from __future__ import annotations

import re
from datetime import datetime
from xml.etree import ElementTree

from qualification.evidence_view import EvidenceView
from qualification.report.page import GateView, Page, read_page
from qualification.results import Outcome

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # no XML 1.0 character


def render(evidence: EvidenceView) -> str:
    """The document, newline-ended. Raises what `read_page` raises."""
    page = read_page(evidence)
    suite = ElementTree.Element("testsuite", _attributes(page))
    _properties(suite, page)
    for gate in page.gates:
        _case(suite, gate)
    root = ElementTree.Element("testsuites", {"name": "assay"})
    root.append(suite)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _attributes(page: Page) -> dict[str, str]:
    kinds = [_kind(gate) for gate in page.gates]
    return {
        "name": _clean(f"qualification of {page.run['subject']['model']}"),
        "tests": str(len(kinds)),
        "failures": str(kinds.count("failure")),
        "errors": str(kinds.count("error")),
        "skipped": str(kinds.count("skipped")),
        "timestamp": page.run["started_utc"].removesuffix("Z"),
        "time": f"{_seconds(page):.3f}",
    }


def _seconds(page: Page) -> float:
    start, end = (datetime.fromisoformat(page.run[key]) for key in ("started_utc", "ended_utc"))
    return (end - start).total_seconds()


def _properties(suite: ElementTree.Element, page: Page) -> None:
    properties = ElementTree.SubElement(suite, "properties")
    values = {
        "run_id": page.run["run_id"],
        "tier": page.summary["tier"],
        "verdict": page.verdict["outcome"],
        "sentence": page.verdict["sentence"],
        "policy": f"{page.policy['name']} {page.policy['version']}",
        "commit": page.run["source"]["commit"] or "unknown",
    }
    for name, value in values.items():
        ElementTree.SubElement(properties, "property", {"name": name, "value": _clean(value)})


def _kind(gate: GateView) -> str:
    """What a dashboard is told: passed, failure, error or skipped."""
    if gate.result.outcome is Outcome.PASSED:
        return "passed"
    if gate.result.outcome is Outcome.ERROR:
        return "error"
    return "failure" if gate.required or gate.result.outcome is Outcome.FAILED else "skipped"


def _case(suite: ElementTree.Element, gate: GateView) -> None:
    result = gate.result
    case = ElementTree.SubElement(suite, "testcase", {"classname": "gates", "name": result.id})
    kind = _kind(gate)
    if kind != "passed":
        message = {"message": _clean(f"{gate.wording.word}: {result.detail}")}
        if kind != "skipped":
            message["type"] = result.reason_code or result.outcome.value
        child = ElementTree.SubElement(case, kind, message)
        child.text = _clean(
            f"Claim: {result.claim}" + (f" Needed: {result.needed} Owner: {result.owner}." if result.needed else "")
        )
    output = ElementTree.SubElement(case, "system-out")
    output.text = _clean(f"{result.detail} n = {result.n}. {gate.figures}".strip())


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
