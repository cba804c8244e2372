"""Charts place values where they belong and survive empty and extreme input."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from qualification.report import charts
from qualification.report.distribution import MOST_DOTS, Group, distribution
from qualification.report.svg import Scale, nice_top, px, tag, ticks


def _group(values: list[float]) -> Group:
    return Group(label="B1", note="n", values=values, median=None, median_upper=None, p95=None)


def test_scale_is_linear() -> None:
    scale = Scale(low=0, high=10, start=100, end=200)
    assert (scale(0), scale(5), scale(10)) == (100, 150, 200)
    assert Scale(low=3, high=3, start=1, end=2)(3) == 1


@pytest.mark.parametrize(
    ("value", "top"), [(0, 1), (0.9, 1), (1, 1), (1.1, 1.5), (240, 300), (0.0031, 0.004), (99, 100)]
)
def test_nice_top(value: float, top: float) -> None:
    assert nice_top(value) == pytest.approx(top)


def test_ticks_lie_inside_and_are_round() -> None:
    assert ticks(0, 300, 7) == [0, 50, 100, 150, 200, 250, 300]
    assert ticks(0, 1, 5) == [0, 0.2, 0.4, 0.6, 0.8, 1.0]


def test_coordinates_are_short_and_never_negative_zero() -> None:
    assert [px(value) for value in (1.0, 1.239, -0.001, 0.5)] == ["1", "1.24", "0", "0.5"]


def test_tags_escape() -> None:
    assert tag("text", "<a & b>", data_x='"') == '<text data-x="&#34;">&lt;a &amp; b&gt;</text>'


def test_every_request_is_a_dot() -> None:
    drawing = distribution([_group([0.1 * k for k in range(100)])], "ms", "label")
    assert drawing.count("<circle") == 100
    ElementTree.fromstring(drawing)


def test_many_requests_are_bars() -> None:
    drawing = distribution([_group([float(k % 50) for k in range(MOST_DOTS + 1)])], "ms", "label")
    assert "<circle" not in drawing
    assert drawing.count("<rect") == 50


def test_dots_stay_inside_the_drawing() -> None:
    drawing = distribution([_group([0.0, 1.0, 1000.0])], "ms", "label")
    xs = [float(value) for value in re.findall(r'cx="([\d.]+)"', drawing)]
    assert min(xs) >= 132
    assert max(xs) <= 920


def test_only_the_silence_is_marked() -> None:
    fine, silent = [(0.1, 0.5), (0.2, 0.8)], [(0.1, -0.2), (0.3, 0.4)]
    drawing = charts.buffers([fine, silent], "B1")
    assert drawing.count('class="stream"') == 2
    assert drawing.count('class="stream under"') == 1
    ElementTree.fromstring(drawing)


def test_required_gates_reach_further_out() -> None:
    segments = [charts.Segment(style="passed", title="a & b", required=flag) for flag in (True, False)]
    drawing = charts.gate_ring(segments, "1/1", "required passed")
    assert "A112 112" in drawing
    assert "A98 98" in drawing
    ElementTree.fromstring(drawing)


def test_empty_input_draws_an_empty_frame() -> None:
    for drawing in (
        distribution([], "ms", "label"),
        distribution([_group([])], "ms", "label"),
        charts.ridges([]),
        charts.ridges([charts.Ridge(label="en", windows=[])]),
        charts.ridges([charts.Ridge(label="en", windows=[0.0, 0.0])]),
        charts.buffers([], "B1"),
        charts.telemetry([], []),
        charts.telemetry([charts.Lane(name="power", unit="W", lines=())], []),
        charts.gate_ring([], "0/0", "required passed"),
    ):
        ElementTree.fromstring(drawing)
