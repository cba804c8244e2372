"""The few pieces that the charts share: a linear scale, round ticks, numbers and elements as text.

Charts are drawn here rather than by a plotting library so that the same evidence gives the same bytes, and so that
colours come from the page's own style sheet, light or dark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup, escape


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Maps values from `low`..`high` to pixels from `start` to `end`, linearly."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = self.high - self.low or 1.0
        return self.start + (value - self.low) / span * (self.end - self.start)


def nice_top(value: float) -> float:
    """The next round number at or above `value` (1, 1.5, 2, 3, 4, 5, 6, 8 times a power of ten)."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * power >= value * (1 - 1e-9))


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round values inside `low`..`high`, about `wanted` of them."""
    raw = (high - low) / max(1, wanted)
    power = 10.0 ** math.floor(math.log10(raw)) if raw > 0 else 1.0
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * (1 - 1e-9)) or 1.0
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(index * step, 10) for index in range(first, last + 1)]


def px(value: float) -> str:
    """A coordinate with two decimals at most; the same text on every machine."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def path(points: Iterable[tuple[float, float]], *, closed: bool = False) -> str:
    """The `d` of a line through points."""
    steps = [f"{'L' if index else 'M'}{px(x)} {px(y)}" for index, (x, y) in enumerate(points)]
    return "".join(steps) + ("Z" if closed else "")


def tag(name: str, content: str | Markup = "", **attributes: str | float) -> Markup:
    """An element; content is escaped unless it is markup, `_` in attribute names becomes `-`, `class_` is `class`."""
    parts = [
        f' {key.rstrip("_").replace("_", "-")}="{escape(px(value) if isinstance(value, float | int) else value)}"'
        for key, value in attributes.items()
    ]
    return Markup(f"<{name}{''.join(parts)}>{escape(content)}</{name}>")  # every part is escaped above


def join(parts: Iterable[Markup]) -> Markup:
    """Elements after one another."""
    return Markup("").join(parts)


def drawing(width: float, height: float, label: str, content: Markup, style: str = "chart") -> Markup:
    """A scalable picture with a name for readers that cannot see it."""
    return tag(
        "svg", content, viewBox=f"0 0 {px(width)} {px(height)}", role="img", aria_label=label, class_=style,
        preserveAspectRatio="xMidYMid meet",
    )  # fmt: skip
