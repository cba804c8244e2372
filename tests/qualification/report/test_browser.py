"""In a browser without network: hashes are re-checked (also by hand), spectrograms drawn, nothing is fetched."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from qualification.evidence_view import EvidenceView
from qualification.report.html import render

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here; install it to try the page in a browser")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--virtual-time-budget=20000",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)  # fmt: skip


def _dom(page: str, directory: Path) -> str:
    assert CHROMIUM is not None
    (directory / "report.html").write_text(page, encoding="utf-8")
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={directory / 'profile'}", "--dump-dom"]
    result = subprocess.run(
        [*command, (directory / "report.html").as_uri()], capture_output=True, timeout=120, check=True, text=True
    )
    return result.stdout


def _rescript(page: str, old: str, new: str) -> str:
    """Change the page's script, and the hash that lets it run."""
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert old in script
    changed = script.replace(old, new)
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, changed)]
    return page.replace(script, changed).replace(*digests)


def test_by_the_browser(good: EvidenceView, tmp_path: Path) -> None:
    """Every clip agrees and is drawn; a script that is not the page's own does not run."""
    page = render(good).replace("</body>", "<script>document.title = 'altered'</script></body>")
    dom = _dom(page, tmp_path)
    assert "30 of 30 clips agree with their records." in dom
    assert dom.count('class="hash-state same"') == 30
    assert len(re.findall(r'<canvas width="\d+" height="96"', dom)) == 30
    assert "<title>altered</title>" not in dom


def test_by_hand_with_one_altered_clip(good: EvidenceView, tmp_path: Path) -> None:
    """Where the browser offers no SHA-256 the page computes its own, and sees the one clip that was altered."""
    page = _rescript(render(good), "globalThis.crypto?.subtle ?", "null ?")
    first = re.search(r"base64,([^\"]+)\"", page)
    assert first is not None
    wav = bytearray(base64.b64decode(first[1]))
    wav[100] ^= 1
    dom = _dom(page.replace(first[1], base64.b64encode(wav).decode()), tmp_path)
    assert "29 of 30 clips agree with their records." in dom
    assert dom.count('class="hash-state other"') == 1
