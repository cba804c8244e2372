"""The page in a real headless Chromium, against a running server; and its absence in hardened mode."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.engine.server.client import request_bytes
from tests.engine.server.conftest import Running, StartServer, eventually
from tests.engine.server.fake_engine import FakeEngine, speech_pcm

if TYPE_CHECKING:
    from playwright.sync_api import Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(
    CHROMIUM is None and not os.environ.get("ASSAY_REQUIRE_BROWSER"), reason="no Chromium is installed"
)


@pytest.fixture(scope="module")
def tab() -> Iterator[Page]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--autoplay-policy=no-user-gesture-required"]
        )
        page = browser.new_context(permissions=["clipboard-read", "clipboard-write"]).new_page()
        yield page
        browser.close()


def visit(tab: Page, server: Running) -> list[str]:
    """Open the page; returns the list into which the browser's complaints go."""
    complaints: list[str] = []
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.goto(f"http://localhost:{server.address[1]}/")
    return complaints


@needs_browser
def test_speech_is_heard_measured_and_drawn(start_server: StartServer, tab: Page) -> None:
    server = start_server(FakeEngine(frame_seconds=0.01))
    complaints = visit(tab, server)
    tab.fill("#text", "It's frames=30")
    tab.fill("#seed", "11")
    tab.click("#speak")
    tab.wait_for_selector("body[data-state=done]", timeout=10_000)
    assert tab.get_attribute("body", "data-samples") == str(30 * 1920)
    assert tab.text_content("#duration") == "2.40 s"
    assert tab.text_content("#reason") == "stop"
    assert tab.text_content("#used-seed") == "11"
    first_audio = tab.text_content("#ttfa") or ""
    assert 5 <= int(first_audio.removesuffix(" ms")) < 2_000
    assert 0 < float(tab.text_content("#rtf") or 0) < 5
    painted = tab.evaluate(
        "() => { const c = document.getElementById('wave');"
        " return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.filter((v) => v).length }"
    )
    assert painted > 10_000
    assert complaints == []


@needs_browser
def test_a_token_is_asked_for_and_used(start_server: StartServer, tab: Page, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret")
    visit(tab, start_server(auth_token_file=str(tmp_path / "token")))
    tab.wait_for_selector("#token-box:not([hidden])", timeout=5_000)
    tab.click("#speak")
    tab.wait_for_selector("body[data-state=failed]", timeout=5_000)
    tab.fill("#token", "s3cret")
    tab.click("#speak")
    tab.wait_for_selector("body[data-state=done]", timeout=10_000)
    assert "s3cret" not in (tab.text_content("#curl") or "")


@needs_browser
def test_saved_wav_is_what_was_sent(start_server: StartServer, tab: Page) -> None:
    visit(tab, start_server())
    tab.fill("#text", "frames=9")
    tab.fill("#seed", "5")
    tab.click("#speak")
    tab.wait_for_selector("body[data-state=done]", timeout=10_000)
    with tab.expect_download() as download:
        tab.click("#save")
    data = download.value.path().read_bytes()
    assert len(data) == 44 + 9 * 3840
    assert data[44:] == speech_pcm(5, 9)


@needs_browser
def test_curl_line_is_copied_and_quotes_are_safe(start_server: StartServer, tab: Page) -> None:
    visit(tab, start_server())
    tab.fill("#text", "It's")
    tab.click("#copy")
    line = tab.evaluate("() => navigator.clipboard.readText()")
    assert line == tab.text_content("#curl")
    assert "It'\\''s" in line


@needs_browser
def test_stop_frees_the_slot(start_server: StartServer, tab: Page) -> None:
    engine = FakeEngine(frame_seconds=0.02)
    visit(tab, start_server(engine))
    tab.fill("#text", "frames=1000")
    tab.click("#speak")
    eventually(lambda: engine.active_requests == 1)
    tab.click("#stop")
    tab.wait_for_selector("body[data-state=stopped]", timeout=5_000)
    eventually(lambda: engine.active_requests == 0)


@needs_browser
def test_failures_are_told(start_server: StartServer, tab: Page) -> None:
    visit(tab, start_server())
    tab.fill("#text", "frames=30 fail_at=5")
    tab.click("#speak")
    tab.wait_for_selector("body[data-state=failed]", timeout=5_000)
    assert tab.inner_text("#status") == "the step failed"


def test_hardened_serves_neither_page_nor_document(start_server: StartServer) -> None:
    server = start_server(hardened=True)
    for path in ("/", "/page.js", "/page.css", "/openapi.json"):
        assert server.ask(request_bytes("GET", path)).status == 404
    assert server.ask(request_bytes("GET", "/health/ready")).status == 200


def test_page_may_load_nothing_from_elsewhere(start_server: StartServer) -> None:
    answer = start_server().ask(request_bytes("GET", "/"))
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert b"http://" not in (page := answer.whole())
    assert b"https://" not in page
