"""Distributions by profile: every request a dot, as long as dots can be told apart, under the summary's figures.

Nothing is smoothed away: an outlier is a dot far out, not the end of a whisker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from qualification.report.svg import Scale, drawing, join, nice_top, tag, ticks
from qualification.report.words import figure

MOST_DOTS = 600


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A value worth a line across all profiles."""

    value: float
    label: str


@dataclass(frozen=True, kw_only=True)
class Group:
    """Values of one profile with the summary's own figures; None where there is none."""

    label: str
    note: str
    values: Sequence[float]
    median: float | None
    median_upper: float | None
    p95: float | None


def distribution(groups: Sequence[Group], unit: str, label: str, mark: Mark | None = None) -> Markup:
    """A row a profile: every request as a dot, the median with its upper bound, the 95th percentile where it exists."""
    width, left, row, top = 920.0, 132.0, 104.0, 22.0
    height = top + row * len(groups) + 34
    high = nice_top(
        max([value for group in groups for value in group.values] + ([mark.value] if mark else []) + [1e-9])
    )
    across = Scale(low=0, high=high, start=left, end=width - 22)
    floor = height - 34
    parts = [_tick(across(value), top, floor, figure(value, unit)) for value in ticks(0, high, 7)]
    if mark is not None:
        x = across(mark.value)
        parts.append(tag("line", x1=x, x2=x, y1=top - 6, y2=floor, class_="limit"))
        parts.append(tag("text", mark.label, x=x, y=top - 10, class_="limit-label", text_anchor="end"))
    for index, group in enumerate(groups):
        parts.append(_row(group, across, top + row * index, row, unit))
    return drawing(width, height, label, join(parts))


def _tick(x: float, top: float, floor: float, text: str) -> Markup:
    return tag("line", x1=x, x2=x, y1=top, y2=floor, class_="grid") + tag(
        "text", text, x=x, y=floor + 18, class_="tick", text_anchor="middle"
    )


def _row(group: Group, across: Scale, top: float, row: float, unit: str) -> Markup:
    middle = top + row * 0.56
    parts = [
        tag("text", group.label, x=0, y=middle, class_="row-label"),
        tag("text", group.note, x=0, y=middle + 17, class_="row-note"),
        tag("line", x1=across.start, x2=across.end, y1=middle, y2=middle, class_="axis"),
        _swarm(group.values, across, middle, row * 0.34),
    ]
    if group.median is not None:
        x = across(group.median)
        parts.append(tag("line", x1=x, x2=x, y1=middle - 26, y2=middle + 26, class_="median"))
        upper = across(group.median if group.median_upper is None else group.median_upper)
        parts.append(tag("line", x1=x, x2=upper, y1=middle + 26, y2=middle + 26, class_="median bound"))
        text = f"median {figure(group.median, unit)}"
        text += "" if group.median_upper is None else f" (\u2264 {figure(group.median_upper, unit)})"
        parts.append(tag("text", text, x=min(x, across.end - 170) - 1, y=middle - 33, class_="value"))
    if group.p95 is not None:
        x = across(group.p95)
        parts.append(tag("line", x1=x, x2=x, y1=middle - 15, y2=middle + 15, class_="p95"))
        parts.append(tag("text", f"p95 {figure(group.p95, unit)}", x=x + 6, y=middle + 27, class_="value quiet"))
    return join(parts)


def _swarm(values: Sequence[float], across: Scale, middle: float, reach: float) -> Markup:
    """Dots that stand on one another around the axis; beyond `MOST_DOTS` one bar a bin instead."""
    bin_width = 5.0
    bins = [int((across(value) - across.start) // bin_width) for value in sorted(values)]
    count = Counter(bins)
    tallest = max(count.values(), default=1)
    if len(values) > MOST_DOTS:
        bars = [
            tag(
                "rect", x=across.start + key * bin_width, width=bin_width - 0.8, class_="dot",
                y=middle - reach * times / tallest, height=2 * reach * times / tallest,
            )
            for key, times in sorted(count.items())
        ]  # fmt: skip
        return join(bars)
    pitch = min(4.6, 2 * reach / tallest)
    seen: Counter[int] = Counter()
    dots = []
    for key in bins:
        place = seen[key]
        seen[key] += 1
        offset = (place + 1) // 2 * (1 if place % 2 else -1) * pitch
        x = across.start + (key + 0.5) * bin_width
        dots.append(tag("circle", cx=x, cy=middle + offset, r=2.1, class_="dot"))
    return join(dots)
