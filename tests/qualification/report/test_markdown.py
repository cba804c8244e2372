"""The summary says everything that speaks against the subject, and text of the evidence cannot become markup."""

from __future__ import annotations

from qualification.evidence_view import EvidenceView
from qualification.report.markdown import render


def test_the_same_bundle_gives_the_same_text(good: EvidenceView) -> None:
    assert render(good) == render(EvidenceView(good.root))


def test_verdict_first(good: EvidenceView, bad: EvidenceView) -> None:
    assert render(good).startswith("## ✅ Qualified: sample/voice-design\n")
    assert render(bad).startswith("## ❌ Not qualified: sample/voice-design\n")


def test_every_gate_has_a_row(bad: EvidenceView) -> None:
    lines = render(bad).splitlines()
    for item in bad.document("gates.json")["results"]:
        (row,) = [line for line in lines if line.startswith(f"| `{item['id']}` |")]
        assert item["outcome"].replace("_", " ") in row


def test_failures_and_undone_gates_come_before_the_table(bad: EvidenceView) -> None:
    text = render(bad)
    before = text[: text.index("### Gates")]
    assert "- **EOS**: 1 × stream error, `internal_error`" in before
    assert "**Natural ends, every language** failed (required)" in before
    assert "### What was not looked at" in before


def test_text_cannot_become_markup(bad: EvidenceView) -> None:
    text = render(bad)
    assert "<b>" not in text.replace("\\<b\\>", "")
    assert "\\<b\\>on purpose\\</b\\>" in text


def test_nothing_against_says_so(good: EvidenceView) -> None:
    assert "Nothing failed, nothing stayed undecided, nothing was waived." in render(good)


def test_tables_are_rectangular(bad: EvidenceView) -> None:
    widths: list[int] = []
    for line in [*render(bad).splitlines(), ""]:
        if line.startswith("|"):
            widths.append(line.replace("\\|", "").count("|"))
        else:
            assert len(set(widths)) <= 1
            widths = []
