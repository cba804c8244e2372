"""The review page in a real headless Chromium without network: rate everything, export, attach, verify; by hand and eye
of a machine, so nothing here is a listener's word."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from qualification import schema
from qualification.cli import main
from qualification.evidence_view import EvidenceView
from qualification.gates.table import GATES
from qualification.listening import blinding
from qualification.listening.attach import attach
from qualification.report.review import render_review
from qualification.tamper import bench
from qualification.tamper.good import Good
from qualification.verify.verifier import verify
from tests.qualification.listening.second import second_bundle

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(
    CHROMIUM is None and not os.environ.get("ASSAY_REQUIRE_BROWSER"), reason="no Chromium is installed"
)


@pytest.fixture(scope="module")
def context() -> Iterator[BrowserContext]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = browser.new_context(offline=True, accept_downloads=True)
        yield context
        browser.close()


@pytest.fixture
def tab(context: BrowserContext) -> Iterator[Page]:
    page = context.new_page()
    page.set_default_timeout(15_000)
    yield page
    page.close()


def visit(tab: Page, html: str, file: Path) -> list[str]:
    """Open the page from disk; returns the list into which complaints and requests that leave it go."""
    complaints: list[str] = []
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    tab.on("request", lambda r: complaints.append(r.url) if not r.url.startswith(("file:", "data:", "blob:")) else None)
    file.write_text(html, encoding="utf-8")
    tab.goto(file.as_uri())
    tab.wait_for_selector("html[data-ready=yes]")
    return complaints


def begin(tab: Page) -> None:
    tab.get_by_label("Your name or sign").fill("listener.one")
    tab.get_by_role("button", name="Begin").press("Enter")
    tab.wait_for_selector("#rate:not([hidden])")


def hear(tab: Page) -> None:
    for number in range(tab.locator("audio").count()):
        tab.locator("audio").nth(number).evaluate("audio => audio.play()")
        tab.get_by_text("heard to its end", exact=False).nth(number).filter(has_text="✓").wait_for()


def rate(tab: Page, score: int) -> None:
    for group in tab.locator("#clips fieldset").all():
        group.get_by_role("radio").nth(score - 1).press("Space")


def saved(tab: Page, file: Path) -> dict[str, Any]:
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Save the record").press("Enter")
    download.value.save_as(file)
    document: dict[str, Any] = json.loads(file.read_bytes())
    return document


@needs_browser
def test_single_clips_from_the_page_to_the_verifier(good_bundle: Good, tab: Page, tmp_path: Path) -> None:
    root = bench.copy(good_bundle, tmp_path / "bundle").root
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    page = tmp_path / "review.html"
    assert main(["review-page", str(root), "--out", str(page)]) == 0
    complaints = visit(tab, page.read_text(encoding="utf-8"), page)
    shown = tab.locator("body").inner_text()
    assert "3 clips agree with their manifest." in shown
    assert not re.search(r"example/good|good-2026|fp32", shown)
    begin(tab)
    assert tab.get_attribute("#progress", "max") == "3"
    tab.get_by_role("button", name="Next").press("Enter")
    alert = tab.locator("#alert").inner_text()
    assert "Clip: listen to its end" in alert and "rate naturalness" in alert
    rate(tab, 3)
    tab.get_by_role("button", name="Next").press("Enter")
    assert tab.locator("#alert").inner_text() == "Not complete. Clip: listen to its end."
    for score in (3, 4, 5):
        hear(tab)
        rate(tab, score)
        tab.get_by_label("Comment").fill("x" * 2_000 if score == 5 else "")
        if score == 4:  # close in the middle and go on
            tab.reload()
            tab.get_by_role("button", name="Go on").press("Enter")
            assert tab.locator("#progress-label").inner_text() == "1 of 3 rated"
        tab.get_by_role("button", name="Next").press("Enter")
    record = saved(tab, tmp_path / "review.json")
    assert complaints == []
    schema.validate("review-record", record, "record")
    names = [item["workload_id"] for item in record["items"]]
    assert names == list(blinding.order(record["seed"], names))
    assert [item["clips"][0]["ratings"]["adherence"] for item in record["items"]] == [3, 4, 5]
    assert len(record["items"][2]["comment"]) == 1_000
    name = attach(root, tmp_path / "review.json", good_bundle.reviewer)
    verification = verify(root, good_bundle.trust, GATES)
    assert verification.findings == ()
    assert (verification.reviews.outcome, verification.reviews.reviewers, verification.reviews.clips) == (
        "performed", 1, 3,
    )  # fmt: skip
    assert (root / name / "record.json").is_file()
    assert {path: path.read_bytes() for path in before} == before


@needs_browser
def test_pairs_of_two_bundles(good_bundle: Good, tab: Page, tmp_path: Path) -> None:
    root = bench.copy(good_bundle, tmp_path / "bundle").root
    other = second_bundle(good_bundle, tmp_path / "other")
    complaints = visit(tab, render_review(EvidenceView(root), EvidenceView(other)), tmp_path / "ab.html")
    begin(tab)
    for _ in range(3):
        hear(tab)
        rate(tab, 4)
        tab.get_by_role("button", name="Next").press("Enter")
        assert tab.locator("#alert").inner_text() == "Not complete. say which you prefer."
        tab.get_by_role("radio", name="the first").press("Space")
        tab.get_by_role("button", name="Next").press("Enter")
    record = saved(tab, tmp_path / "review.json")
    assert complaints == []
    for item in record["items"]:
        swapped = blinding.swapped(record["seed"], item["workload_id"])
        assert [clip["bundle"] for clip in item["clips"]] == ([1, 0] if swapped else [0, 1])
    for bundle in (root, other):
        attach(bundle, tmp_path / "review.json", good_bundle.reviewer)
    verification = verify(root, good_bundle.trust, GATES)
    assert [finding.code for finding in verification.findings] == ["layer.other-bundle"]
    preferences = verification.reviews.preferences
    assert preferences is not None
    shown_first = sum(item["clips"][0]["bundle"] == 0 for item in record["items"])
    assert (preferences.this, preferences.other, preferences.neither) == (shown_first, 3 - shown_first, 0)


@needs_browser
def test_an_altered_clip_is_not_rated(good_bundle: Good, tab: Page, tmp_path: Path) -> None:
    html = render_review(EvidenceView(good_bundle.root))
    first = re.search(r'"wav": "([^"]+)"', html)
    assert first is not None
    wav = bytearray(base64.b64decode(first[1]))
    wav[100] ^= 1
    visit(tab, html.replace(first[1], base64.b64encode(wav).decode()), tmp_path / "altered.html")
    assert "1 of 3 clips are not those that were sealed" in tab.locator("#alert").inner_text()
    assert not tab.locator("#begin").is_visible()


@needs_browser
def test_no_script_but_its_own_runs(good_bundle: Good, tab: Page, tmp_path: Path) -> None:
    html = render_review(EvidenceView(good_bundle.root))
    visit(tab, html.replace("</body>", "<script>document.title = 'altered'</script></body>"), tmp_path / "x.html")
    assert tab.title() == "Listening review"


def test_the_page_is_a_function_of_the_bundles_and_names_no_subject(good_bundle: Good) -> None:
    html = render_review(EvidenceView(good_bundle.root))
    assert html == render_review(EvidenceView(good_bundle.root))
    assert "example/good" not in html
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", html)
