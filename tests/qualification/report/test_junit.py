"""A dashboard that knows tests only must not read a gate that was not performed as a success."""

from __future__ import annotations

import shutil
from pathlib import Path
from xml.etree import ElementTree

from qualification import strictjson
from qualification.evidence_view import EvidenceView
from qualification.report.junit import render


def _suite(evidence: EvidenceView) -> ElementTree.Element:
    suite = ElementTree.fromstring(render(evidence)).find("testsuite")
    assert suite is not None
    return suite


def _kinds(suite: ElementTree.Element) -> dict[str, str]:
    kinds = {}
    for case in suite.iter("testcase"):
        found = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        assert len(found) <= 1
        kinds[case.attrib["name"]] = found[0] if found else "passed"
    return kinds


def test_each_gate_is_one_case_and_the_counts_agree(good: EvidenceView, bad: EvidenceView) -> None:
    for evidence in (good, bad):
        suite = _suite(evidence)
        kinds = _kinds(suite)
        assert list(kinds) == [item["id"] for item in evidence.document("gates.json")["results"]]
        assert int(suite.attrib["tests"]) == len(kinds)
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.attrib[name]) == list(kinds.values()).count(tag)


def test_only_passed_is_passed(bad: EvidenceView) -> None:
    kinds = _kinds(_suite(bad))
    passed = {item["id"] for item in bad.document("gates.json")["results"] if item["outcome"] == "passed"}
    assert {name for name, kind in kinds.items() if kind == "passed"} == passed


def test_a_required_gate_is_never_skipped(bad: EvidenceView) -> None:
    kinds = _kinds(_suite(bad))
    required = bad.document("summary.json")["verdict"]["required"]
    assert {kinds[gate] for gate in required} <= {"passed", "failure", "error"}
    assert kinds["bench.b1"] == "failure"  # inconclusive, and required
    assert kinds["container.identity"] == "skipped"


def test_an_error_and_odd_characters_are_written(bad_root: Path, tmp_path: Path) -> None:
    shutil.copytree(bad_root, tmp_path / "copy")
    path = tmp_path / "copy" / "gates.json"
    document = strictjson.load(path)
    document["results"][0].update(outcome="error", detail="\u0000 <broken> & \u0007 \ufffe")
    path.write_bytes(strictjson.dumps(document))
    suite = _suite(EvidenceView(tmp_path / "copy"))
    error = suite.find("testcase/error")
    assert error is not None
    assert error.attrib["message"] == "could not be evaluated: \ufffd <broken> & \ufffd \ufffd"


def test_properties_carry_the_verdict(good: EvidenceView) -> None:
    properties = {item.attrib["name"]: item.attrib["value"] for item in _suite(good).iter("property")}
    assert properties["verdict"] == "qualified"
    assert properties["tier"] == "reference"
