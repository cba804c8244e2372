"""The picture of batch invariance: how many requests gave the same samples alone and beside others, and how far off the rest were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from qualification.batch_invariance import Pair, pairs
from qualification.bench.raw import SAMPLE_RATE_HZ
from qualification.evidence_view import EvidenceView
from qualification.report.distribution import Group, distribution
from qualification.report.svg import Scale, drawing, join, tag

_WIDTH, _LEFT, _ROW = 920.0, 132.0, 54.0
_KINDS = (("same samples", "passed"), ("same length, other samples", "inconclusive"), ("another length", "failed"))


@dataclass(frozen=True, kw_only=True)
class Beside:
    """What the section shows; `lengths` and `levels` None where there is nothing to draw. `told` opens it in words."""

    told: str
    shares: Markup | None
    lengths: Markup | None
    levels: Markup | None


def beside(evidence: EvidenceView) -> Beside:
    """Read and draw. Raises like `batch_invariance.pairs`."""
    found = pairs(evidence)
    if not found:
        why = "the subject takes no seed" if "seed" in evidence.leaves_open else "no request was also sent alone"
        return Beside(told=f"Not compared: {why}.", shares=None, lengths=None, levels=None)
    rows = [
        (name, [pair for pair in found if pair.profile == name]) for name in dict.fromkeys(p.profile for p in found)
    ]
    told = "; ".join(
        f"{name}: {sum(pair.equal for pair in row)} of {len(row)} gave the same samples" for name, row in rows
    )
    other = [pair for pair in found if pair.samples != pair.reference_samples]
    levels = [pair for pair in found if pair.distance is not None and pair.distance.snr_db is not None]
    return Beside(
        told=f"{told}.",
        shares=shares([(name, row[0].concurrency, [_kind(pair) for pair in row]) for name, row in rows]),
        lengths=_dots(rows, other, "ms", "Difference in length of each request that differs in length, by profile"),
        levels=_dots(rows, levels, "dB", "Reference over difference in decibels, by profile"),
    )


def shares(rows: Sequence[tuple[str, int, Sequence[int]]]) -> Markup:
    """One bar a profile: (name, concurrency, kind of each pair: 0 same samples, 1 same length, 2 another length)."""
    across = Scale(low=0, high=1, start=_LEFT, end=_WIDTH - 22)
    parts = [_bar(name, concurrency, kinds, across, _ROW * at) for at, (name, concurrency, kinds) in enumerate(rows)]
    label = "Requests alone and beside others, by profile"
    return drawing(_WIDTH, _ROW * len(rows) + 8, label, join(parts))


def _bar(name: str, concurrency: int, kinds: Sequence[int], across: Scale, top: float) -> Markup:
    parts = [
        tag("text", name, x=0, y=top + 24, class_="row-label"),
        tag(
            "text", "alone again" if concurrency == 1 else f"{concurrency} at once", x=0, y=top + 41, class_="row-note"
        ),
    ]
    done = 0
    for kind, (words, style) in enumerate(_KINDS):
        count = kinds.count(kind)
        if not count:
            continue
        left, right = (across(share / len(kinds)) for share in (done, done + count))
        title = tag("title", f"{name}: {count} of {len(kinds)}, {words}")
        parts.append(
            tag("rect", title, x=left, y=top + 8, width=right - left - 1, height=16.0, class_=f"share {style}")
        )
        done += count
    told = [f"{kinds.count(kind)} {words}" for kind, (words, _) in enumerate(_KINDS) if kind in kinds]
    return join([*parts, tag("text", " \u00b7 ".join(told), x=across.start, y=top + 41, class_="row-note")])


def _kind(pair: Pair) -> int:
    return 0 if pair.equal else 1 if pair.samples == pair.reference_samples else 2


def _dots(rows: Sequence[tuple[str, list[Pair]]], chosen: Sequence[Pair], unit: str, label: str) -> Markup | None:
    groups = [_group(name, [pair for pair in chosen if pair.profile == name], unit) for name, _ in rows]
    shown = [group for group in groups if group.values]
    return distribution(shown, unit, label) if shown else None


def _group(name: str, chosen: Sequence[Pair], unit: str) -> Group:
    values = [_milliseconds(pair) if unit == "ms" else _level(pair) for pair in chosen]
    return Group(label=name, note=f"{len(values)} differ", values=values, median=None, median_upper=None, p95=None)


def _milliseconds(pair: Pair) -> float:
    return abs(pair.samples - pair.reference_samples) / SAMPLE_RATE_HZ * 1e3


def _level(pair: Pair) -> float:
    assert pair.distance is not None  # chosen for it
    assert pair.distance.snr_db is not None
    return max(pair.distance.snr_db, 0.0)
