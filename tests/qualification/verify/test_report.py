"""The answer, the exit status and both forms of a verification, without any bundle."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qualification import schema
from qualification.verify.findings import Finding
from qualification.verify.report import Sealed, Verification

NOTE = Finding(code="signature.none", file="statement.dsse.json", detail="unsigned", refuses=False)
LATE = Finding(code="audio.repeated", file="samples", detail="twice")
EARLY = Finding(code="file.extra", file="z.txt", detail="extra")


def _sealed(verdict: str = "qualified") -> Sealed:
    return Sealed(
        run_id="run-00000001", tier="reference", verdict=verdict, sentence="The sentence.", manifest_sha256="a" * 64
    )


@pytest.mark.parametrize(
    ("findings", "sealed", "answer", "status"),
    [
        ((), _sealed(), "qualified", 0),
        ((NOTE,), _sealed(), "qualified", 0),
        ((NOTE,), _sealed("not_qualified"), "not_qualified", 7),
        ((NOTE,), _sealed("incomplete"), "incomplete", 9),
        ((NOTE,), replace(_sealed("incomplete"), unmet=("bench.b1",)), "incomplete", 7),
        ((LATE,), _sealed("incomplete"), "refused", 15),
        ((LATE,), _sealed(), "refused", 15),
        ((NOTE, LATE, EARLY), _sealed(), "refused", 10),
        ((LATE,), None, "refused", 15),
        ((), None, "refused", 10),
    ],
)
def test_answer_and_status(findings: tuple[Finding, ...], sealed: Sealed | None, answer: str, status: int) -> None:
    verification = Verification(findings=findings, sealed=sealed)
    assert (verification.answer, verification.exit_code) == (answer, status)
    assert verification.refused == (answer == "refused")
    document = verification.to_json()
    schema.validate("verification", document, "verification")
    assert (document["answer"], document["exit_code"]) == (answer, status)
    assert document["sealed"] == ({**vars(sealed), "unmet": list(sealed.unmet)} if sealed else None)


def test_the_heaviest_comes_first_in_both_forms() -> None:
    verification = Verification(findings=(NOTE, LATE, EARLY), sealed=_sealed())
    assert [item["code"] for item in verification.to_json()["findings"]] == [
        "file.extra",
        "audio.repeated",
        "signature.none",
    ]
    assert verification.to_json()["findings"][0] == {
        "code": "file.extra",
        "family": "structure",
        "file": "z.txt",
        "detail": "extra",
        "refuses": True,
    }
    assert list(verification.lines()) == [
        "  1. refused  file.extra                    z.txt: extra",
        "  2. refused  audio.repeated                samples: twice",
        "  3. note     signature.none                statement.dsse.json: unsigned",
        "REFUSED: 2 findings refuse this bundle.",
    ]
    assert list(Verification(findings=(), sealed=_sealed()).lines()) == ["The sentence."]
