"""The telemetry of the report: lanes, figures beside the idle machine, and sensors that were not there."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from qualification.evidence_view import EvidenceView
from qualification.report import watching
from qualification.report.page import read_page
from qualification.tamper.good import Good


@pytest.fixture
def watched(good_bundle: Good) -> EvidenceView:
    """A bundle whose machine had every sensor."""
    return EvidenceView(good_bundle.root)


def lanes(evidence: EvidenceView) -> list[str]:
    """Styles of the lines that are drawn and have points."""
    picture = watching.picture(evidence)
    assert picture is not None
    paths = ElementTree.fromstring(picture).iter("path")
    return [item.attrib["class"].split()[1] for item in paths if "trace" in item.attrib["class"] and item.get("d")]


def test_every_quantity_that_was_sensed_has_a_line(watched: EvidenceView, good: EvidenceView) -> None:
    assert lanes(watched) == ["memory", "pss", "cores", "others", "power", "clock"]
    assert lanes(good) == ["memory", "pss", "cores", "others"]  # no accelerator there


def test_the_idle_machine_and_the_measured_phases_are_shaded(watched: EvidenceView) -> None:
    picture = str(watching.picture(watched))
    assert picture.count("band idle") == 1
    assert picture.count("band measure") == sum(phase["kind"] == "measure" for phase in watched.phases)


def test_figures_are_the_summarys_and_empty_rows_are_left_out(watched: EvidenceView, good: EvidenceView) -> None:
    page = read_page(watched)
    rows = dict(watching.rows(page.profiles))
    b1 = [profile.name for profile in page.profiles].index("B1")
    assert rows["longest stretch without a sample"][b1] == page.profiles[b1].shown("telemetry.gap.max") == "80\u202fms"
    assert "energy of all accelerators, a minute of audio" in rows
    without = dict(watching.rows(read_page(good).profiles))
    assert "energy of all accelerators, a minute of audio" not in without
    assert "peak proportional memory" in without


def test_what_could_not_be_sensed_is_said_with_the_reason(watched: EvidenceView, good: EvidenceView) -> None:
    told, missing = dict(watching.facts(watched)), dict(watching.facts(good))
    assert told["energy of the processors"] == "intel-rapl:0"
    assert missing["energy of the processors"] == "not performed: the kernel shows no powercap directory"
    assert told["priority of the sampler"] == "nice -10"
    assert told["accelerator clocks held down by"].startswith("power cap (")
    assert missing["accelerator clocks held down by"] == "not told"
    assert "busy" in told["before the subject"]
    assert missing["before the subject"] == "not watched"


def test_a_peak_survives_the_thinning() -> None:
    points = [(float(at), 1.0) for at in range(10_000)]
    points[6_543] = (6_543.0, 99.0)
    thin = watching.thinned(points)
    assert 0 < len(thin) <= watching.MOST_POINTS
    assert (6_543.0, 99.0) in thin
    assert [at for at, _ in thin] == sorted(at for at, _ in thin)
    assert watching.thinned([]) == []


def test_without_samples_there_is_nothing_to_draw(watched: EvidenceView, tmp_path: Path) -> None:
    assert watching.picture(EvidenceView(tmp_path)) is None
    view = EvidenceView(watched.root)
    view.__dict__["telemetry"] = watched.telemetry[:1]
    assert watching.picture(view) is None
