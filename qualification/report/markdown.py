"""The report as a short Markdown text, for the summary page of a CI job.

Everything that speaks against the subject is here in full; what was shown is a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from qualification.evidence_view import EvidenceView
from qualification.report.page import GateView, Page, read_page


def render(evidence: EvidenceView) -> str:
    """The text, newline-ended. Raises what `read_page` raises."""
    page = read_page(evidence)
    return "\n".join([*_head(page), *_against(page), *_gates(page), *_speed(page), *_limits(page)]) + "\n"


def _head(page: Page) -> Iterator[str]:
    subject = page.run["subject"]
    yield f"## {'✅' if page.qualified else '⚠️' if page.incomplete else '❌'} {page.headline}: {_text(subject['model'])}"
    yield ""
    yield _text(page.verdict["sentence"])
    yield ""
    ran = f"{subject['kind']}, {subject['device']}, {subject['precision']}"
    yield f"Tier **{page.summary['tier']}** ({_text(page.tier_words)}). Ran as {ran}."
    if page.broken_off:
        yield f"Gathered **{_text(page.broken_off)}**."
    yield ""
    if page.ends_claim:
        yield _text(page.ends_claim)
        yield ""
    yield "| figure | value | |"
    yield "|---|---:|---|"
    for tile in page.tiles:
        yield f"| {_text(tile.label)} | **{_text(tile.value)}** | {_text(tile.note)} |"
    yield ""


def _against(page: Page) -> Iterator[str]:
    yield "### What speaks against it"
    yield ""
    for gate in page.against:
        yield f"- **{_text(gate.result.title)}** {gate.wording.word}{_required(gate)}: {_text(gate.result.detail)}"
    for failure in page.failures:
        yield f"- **{failure.profile}**: {failure.count} × {failure.outcome}, `{failure.code}`: {_text(failure.detail)}"
    for waiver in page.verdict["waived"]:
        yield f"- waived until {waiver['until']} by {_text(waiver['who'])}: `{waiver['gate']}`, {_text(waiver['why'])}"
    if not (page.against or page.failures or page.verdict["waived"]):
        yield "Nothing failed, nothing stayed undecided, nothing was waived."
    yield ""
    yield "### What was not looked at"
    yield ""
    for gate in page.undone:
        text = f"{gate.result.detail} Needed: {gate.result.needed}"
        yield f"- **{_text(gate.result.title)}**{_required(gate)}: {_text(text)}"
    if not page.undone:
        yield "Every gate was performed."
    yield ""


def _required(gate: GateView) -> str:
    return " (required)" if gate.required else ""


def _gates(page: Page) -> Iterator[str]:
    yield "### Gates"
    yield ""
    yield "| gate | outcome | required | n | found |"
    yield "|---|---|---|---:|---|"
    for gate in page.gates:
        mark = "yes" if gate.required else ""
        found = _text(gate.figures)
        yield f"| `{gate.result.id}` | {gate.wording.sign} {gate.wording.word} | {mark} | {gate.result.n} | {found} |"
    yield ""


def _speed(page: Page) -> Iterator[str]:
    rows = (
        ("measured", "requests"),
        ("failed", "failed"),
        ("RTF median", "rtf.median"),
        ("RTF aggregate", "rtf.aggregate"),
        ("first audio median", "ttfa.median"),
        ("first audio p95", "ttfa.p95"),
        ("longest underrun", "underrun.max"),
    )
    yield "### Speed, with 95 % upper bounds"
    yield ""
    yield "| | " + " | ".join(f"{profile.name} ({profile.load})" for profile in page.profiles) + " |"
    yield "|---" * (len(page.profiles) + 1) + "|"
    for title, key in rows:
        yield f"| {title} | " + " | ".join(_text(profile.shown(key)) for profile in page.profiles) + " |"
    yield "| standing | " + " | ".join(profile.standing for profile in page.profiles) + " |"
    yield ""


def _limits(page: Page) -> Iterator[str]:
    yield "### Limits of the claim"
    yield ""
    for limit in page.summary["limitations"]:
        yield f"- {_text(limit['text'])}"
    yield ""
    yield f"Run `{page.run['run_id']}`. Check it: `python -m qualification verify {page.run['run_id']}`."


def _text(value: str) -> str:
    """Text from the evidence as plain words: no markup, no line break, no cell border of its own."""
    flat = re.sub(r"\s+", " ", value).strip()
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", flat)
