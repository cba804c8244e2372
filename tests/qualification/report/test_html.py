"""The page is a pure function of the bundle, asks nobody for anything, escapes everything and hides nothing."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from qualification.errors import BundleError
from qualification.evidence_view import EvidenceView
from qualification.report.html import render
from qualification.results import Outcome


@pytest.fixture(scope="module")
def good_page(good: EvidenceView) -> str:
    return render(good)


@pytest.fixture(scope="module")
def bad_page(bad: EvidenceView) -> str:
    return render(bad)


class _Reader(HTMLParser):
    """Collects text, attributes that could load something, and unbalanced tags."""

    VOID = frozenset({"meta", "br", "input", "link", "img"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.sources: list[str] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.ids: list[str] = []
        self.balanced = True

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "action", "data", "poster", "srcset", "xlink:href"):
                self.sources.append(value or "")
            if name == "id":
                self.ids.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        self.balanced &= bool(self.open) and self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def _read(page: str) -> _Reader:
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader


def _words(page: str) -> str:
    return re.sub(r"\s+", " ", " ".join(_read(page).text))


def test_the_same_bundle_gives_the_same_bytes_wherever_it_lies(good_root: Path, good_page: str, tmp_path: Path) -> None:
    shutil.copytree(good_root, tmp_path / "copy")
    assert render(EvidenceView(tmp_path / "copy")) == good_page


def test_markup_is_balanced_and_ids_are_unique(good_page: str, bad_page: str) -> None:
    for page in (good_page, bad_page):
        reader = _read(page)
        assert reader.balanced
        assert reader.open == []
        assert len(set(reader.ids)) == len(reader.ids)


def test_nothing_is_fetched(good_page: str, bad_page: str) -> None:
    for page in (good_page, bad_page):
        sources = _read(page).sources
        assert sources
        assert [item for item in sources if not item.startswith(("#", "data:audio/wav;base64,"))] == []
        assert "default-src 'none'" in page
        assert not re.search(r"https?://|@import|url\((?!#)", re.sub(r"http://127\.0\.0\.1:1", "", page))


def test_links_lead_to_sections(good_page: str) -> None:
    reader = _read(good_page)
    assert {item[1:] for item in reader.sources if item.startswith("#")} <= set(reader.ids)


def test_only_the_script_of_the_page_may_run(good_page: str) -> None:
    (script,) = re.findall(r"<script>(.*?)</script>", good_page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in good_page


def test_text_of_the_evidence_is_escaped(bad_page: str) -> None:
    assert "<b>on purpose</b>" not in bad_page
    assert "&lt;b&gt;on purpose&lt;/b&gt;" in bad_page


def test_every_gate_is_there_with_its_outcome_in_words(bad: EvidenceView, bad_page: str) -> None:
    words = _words(bad_page)
    for item in bad.document("gates.json")["results"]:
        assert item["id"] in words
        assert item["claim"] in words
        assert item["outcome"].replace("_", " ") in words


def test_verdict_sentence_is_whole(good: EvidenceView, good_page: str, bad: EvidenceView, bad_page: str) -> None:
    for view, page in ((good, good_page), (bad, bad_page)):
        sentence = view.document("summary.json")["verdict"]["sentence"]
        assert all(part in _words(page) for part in sentence.split(". "))
    assert "Qualified" in good_page[: good_page.index("</header>")]
    assert "Not qualified" in bad_page[: bad_page.index("</header>")]


def test_what_speaks_against_comes_before_the_details(bad: EvidenceView, bad_page: str) -> None:
    section = bad_page[bad_page.index('id="evidence"') : bad_page.index('id="voices"')]
    words = _words(section)
    gates = bad.document("gates.json")["results"]
    unhappy = [item for item in gates if item["outcome"] not in (Outcome.PASSED, Outcome.NOT_APPLICABLE)]
    assert unhappy
    for item in unhappy:
        assert item["title"] in words
    assert "EOS: 1 request failed" in words
    assert bad_page.index('id="evidence"') < bad_page.index('id="speed"')


def test_failed_requests_are_in_the_key_figures(bad_page: str) -> None:
    tiles = _words(bad_page[bad_page.index('class="tiles"') : bad_page.index('id="evidence"')])
    assert "4 of 66 requests that failed" in tiles
    assert "22 of 24 languages that ended naturally" in tiles


def test_clips_carry_the_hash_of_their_record(bad: EvidenceView, bad_page: str) -> None:
    records = {record.pcm_sha256 for record in bad.records() if record.audio}
    clips = re.findall(r'data-pcm-sha256="(\w+)".*?base64,([^"]+)"', bad_page, re.DOTALL)
    assert len(clips) == 29  # 24 languages and 6 mixed sentences, without the one that failed
    for expected, data in clips:
        assert expected in records
        assert hashlib.sha256(base64.b64decode(data)[44:]).hexdigest() == expected


def test_a_clip_that_did_not_end_says_so(bad_page: str) -> None:
    assert bad_page.count("ran into the ceiling</span></span>") == 2


def test_a_language_that_failed_shows_it(bad_page: str) -> None:
    row = re.search(r'<th scope="row">Hindi.*?</tr>', bad_page, re.DOTALL)
    assert row is not None
    assert "0 of 1" in row[0]
    assert "failed: internal_error" in row[0]


def test_a_missing_document_is_an_error_and_no_page(good_root: Path, tmp_path: Path) -> None:
    shutil.copytree(good_root, tmp_path / "copy")
    (tmp_path / "copy" / "gates.json").unlink()
    with pytest.raises(BundleError, match=r"gates\.json"):
        render(EvidenceView(tmp_path / "copy"))


def test_a_bundle_without_telemetry_and_audio_has_a_page(good_root: Path, tmp_path: Path) -> None:
    shutil.copytree(good_root, tmp_path / "copy")
    (tmp_path / "copy" / "telemetry.jsonl").unlink()
    samples = tmp_path / "copy" / "samples" / "eos.jsonl"
    samples.write_text(re.sub(r'"audio":"[^"]+"', '"audio":null', samples.read_text()))
    page = render(EvidenceView(tmp_path / "copy"))
    assert "No telemetry was recorded." in page
    assert "No utterance was stored." in page
