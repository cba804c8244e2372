"""The pictures of the report: a ring of gates, ridges of loudness, audio in hand, telemetry over time.

Each takes plain values and gives one SVG as markup; colours are the style sheet's.
Distributions have a file of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from qualification.report.svg import Scale, drawing, join, nice_top, path, px, tag, ticks
from qualification.report.words import figure

MOST_LINES = 160
RIDGE_POINTS = 110


@dataclass(frozen=True, kw_only=True)
class Segment:
    """One gate on the ring."""

    style: str
    title: str
    required: bool


@dataclass(frozen=True, kw_only=True)
class Ridge:
    """Loudness of one clip: root mean square of each 20 ms window, share of full scale."""

    label: str
    windows: Sequence[float]


@dataclass(frozen=True, kw_only=True)
class Band:
    """A stretch of the time axis with a name, in seconds."""

    label: str
    style: str
    start: float
    end: float


@dataclass(frozen=True, kw_only=True)
class Lane:
    """One quantity over the run: lines of (second, value), each with its style; the first is filled."""

    name: str
    unit: str
    lines: Sequence[tuple[str, Sequence[tuple[float, float]]]]


def gate_ring(segments: Sequence[Segment], big: str, small: str) -> Markup:
    """One arc a gate; required gates reach further out."""
    size, middle, gap = 240.0, 120.0, 0.022
    step = 2 * math.pi / max(1, len(segments))
    arcs = [
        tag(
            "path", tag("title", segment.title), class_=f"arc {segment.style}",
            d=_arc(middle, 84, 112 if segment.required else 98, index * step + gap, (index + 1) * step - gap),
        )
        for index, segment in enumerate(segments)
    ]  # fmt: skip
    words = [
        tag("text", big, x=middle, y=middle + 4, class_="ring-big", text_anchor="middle"),
        tag("text", small, x=middle, y=middle + 28, class_="ring-small", text_anchor="middle"),
    ]
    return drawing(size, size, f"Gates: {big} {small}", join([*arcs, *words]), style="ring")


def _arc(middle: float, inner: float, outer: float, start: float, end: float) -> str:
    def at(radius: float, angle: float) -> str:
        return f"{px(middle + radius * math.sin(angle))} {px(middle - radius * math.cos(angle))}"

    return (
        f"M{at(outer, start)}A{px(outer)} {px(outer)} 0 0 1 {at(outer, end)}"
        f"L{at(inner, end)}A{px(inner)} {px(inner)} 0 0 0 {at(inner, start)}Z"
    )


def ridges(rows: Sequence[Ridge]) -> Markup:
    """Clips one behind the other on a common time axis: where each voice is loud and where it rests."""
    width, left, spacing, reach = 560.0, 30.0, 18.0, 42.0
    height = reach + spacing * len(rows) + 8
    longest = max((len(row.windows) for row in rows), default=1) or 1
    across = Scale(low=0, high=longest, start=left, end=width - 6)
    parts = []
    for index, row in enumerate(rows):
        base = reach + spacing * index
        crest = [(across(at), base - reach * level) for at, level in _crest(row.windows, longest)]
        outline = [(across(0), base), *crest, (across(len(row.windows)), base)]
        parts.append(tag("path", d=path(outline, closed=True), class_="ridge-fill"))
        parts.append(tag("path", d=path(outline), class_="ridge-line"))
        parts.append(tag("text", row.label, x=left - 8, y=base, class_="ridge-label", text_anchor="end"))
    return drawing(width, height, "Loudness over time of one utterance in each language", join(parts), style="ridges")


def _crest(windows: Sequence[float], longest: int) -> list[tuple[float, float]]:
    """Mean loudness of each stretch of a clip as a share of its loudest stretch, at the stretch's middle."""
    step = max(1, math.ceil(longest / RIDGE_POINTS))
    stretches = [(start + step / 2, windows[start : start + step]) for start in range(0, len(windows), step)]
    means = [(at, math.fsum(part) / len(part)) for at, part in stretches]
    top = max((level for _, level in means), default=0.0) or 1.0
    return [(at, level / top) for at, level in means]


def buffers(lines: Sequence[Sequence[tuple[float, float]]], name: str) -> Markup:
    """Audio in hand when each packet arrives, for each stream: (seconds since the first packet, seconds in hand).

    Below zero a player that started with the first packet would have fallen silent. `name` is the profile's.
    """
    longest = max((x for line in lines for x, _ in line), default=1.0)
    deepest = min((y for line in lines for _, y in line), default=0.0)
    width, height, left, top = 440.0, 250.0, 40.0, 12.0
    high = nice_top(max([y for line in lines for _, y in line] + [0.2]))
    low = min(-0.08 * high, deepest * 1.15)
    across = Scale(low=0, high=longest or 1.0, start=left, end=width - 8)
    up = Scale(low=low, high=high, start=height - 30, end=top)
    parts = [tag("rect", x=left, y=up(0), width=width - 8 - left, height=up(low) - up(0), class_="dry")]
    for value in ticks(0, high, 4):
        parts.append(tag("line", x1=left, x2=width - 8, y1=up(value), y2=up(value), class_="grid"))
        parts.append(tag("text", f"{value:g} s", x=left - 6, y=up(value) + 4, class_="tick", text_anchor="end"))
    for value in ticks(0, longest, 5):
        parts.append(tag("text", f"{value:g} s", x=across(value), y=height - 12, class_="tick", text_anchor="middle"))
    drawn = [(path((across(x), up(y)) for x, y in line), min(y for _, y in line)) for line in lines[:MOST_LINES]]
    parts += [tag("path", d=outline, class_="stream") for outline, _ in drawn]
    below = tag("rect", x=left, y=up(0), width=width - 8 - left, height=up(low) - up(0))
    parts.append(tag("clipPath", below, id=f"below-{name}"))
    silent = [tag("path", d=outline, class_="stream under") for outline, lowest in drawn if lowest < 0]
    parts.append(tag("g", join(silent), clip_path=f"url(#below-{name})"))
    parts.append(tag("line", x1=left, x2=width - 8, y1=up(0), y2=up(0), class_="zero"))
    return drawing(width, height, f"Audio in hand at each packet, profile {name}", join(parts))


def telemetry(lanes: Sequence[Lane], bands: Sequence[Band]) -> Markup:
    """Lanes one below the other over the time of the run, with some of its phases behind them."""
    width, left, top, high = 920.0, 64.0, 30.0, 92.0
    seconds = [second for lane in lanes for _, points in lane.lines for second, _ in points]
    end = max([*seconds, *(band.end for band in bands), 1.0])
    across = Scale(low=0, high=end, start=left, end=width - 12)
    depth = len(lanes) * (high + 14)
    height = top + depth + 26
    parts = []
    for band in bands:
        x, wide = across(band.start), across(band.end) - across(band.start)
        parts.append(tag("rect", x=x, y=top - 6, width=wide, height=depth + 2, class_=f"band {band.style}"))
        if wide > 26:
            parts.append(tag("text", band.label, x=x + wide / 2, y=top - 12, class_="tick", text_anchor="middle"))
    for index, lane in enumerate(lanes):
        parts.append(_lane(lane, across, top + index * (high + 14), high))
    for value in ticks(0, end, 8):
        parts.append(tag("text", f"{value:g} s", x=across(value), y=height - 8, class_="tick", text_anchor="middle"))
    names = ", ".join(lane.name for lane in lanes)
    return drawing(width, height, f"Telemetry over the run: {names}", join(parts))


def _lane(lane: Lane, across: Scale, top: float, depth: float) -> Markup:
    high = nice_top(max([value for _, points in lane.lines for _, value in points] + [1e-9]))
    up = Scale(low=0, high=high, start=top + depth, end=top)
    drawn = [(style, [(across(second), up(value)) for second, value in points]) for style, points in lane.lines]
    style, first = drawn[0] if drawn else (lane.name, [])
    area = [(first[0][0], up(0)), *first, (first[-1][0], up(0))] if first else []
    return join(
        [
            tag("path", d=path(area, closed=True), class_=f"area {style}"),
            *(tag("path", d=path(line), class_=f"trace {name}") for name, line in drawn),
            tag("line", x1=across.start, x2=across.end, y1=up(0), y2=up(0), class_="axis"),
            tag("text", figure(high, lane.unit), x=across.start - 8, y=top + 8, class_="tick", text_anchor="end"),
            tag("text", lane.name, x=across.start - 8, y=top + depth, class_="tick", text_anchor="end"),
        ]
    )
