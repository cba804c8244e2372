"""One profile of two subjects: what both sent, in which order, and a verdict for each figure.

Profiles that are there for their ends (languages, for one) are counted and have no figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from qualification.bench.profiles import is_timed
from qualification.comparison import verdicts
from qualification.comparison.bootstrap import Estimate
from qualification.comparison.figures import FIGURES, Figure, estimate_of
from qualification.comparison.matching import Round, Tally, rounds_of
from qualification.comparison.order import Order, block, order_of
from qualification.comparison.verdicts import Verdict
from qualification.evidence_view import EvidenceView

Pairing = Sequence[tuple[EvidenceView, EvidenceView]]


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One figure of one profile."""

    figure: Figure
    estimate: Estimate | None
    verdict: Verdict

    def to_json(self) -> dict[str, Any]:
        """The object of the document; without an estimate its numbers are null and its counts zero."""
        nothing: dict[str, Any] = dict.fromkeys(("ratio", "low", "high", "minimum_detectable")) | {
            "rounds": 0,
            "pairs": 0,
        }
        return {
            "figure": self.figure.name,
            "title": self.figure.title,
            **(nothing if self.estimate is None else asdict(self.estimate)),
            "verdict": self.verdict.word.value,
            "reason": self.verdict.reason,
            "sentence": verdicts.sentence(self.estimate, self.verdict),
        }


@dataclass(frozen=True, kw_only=True)
class ComparedProfile:
    """A profile; `sequence` has the sides' rounds in order of their start. `overlapping`: they shared one machine."""

    name: str
    load: str
    concurrency: int
    sequence: str
    order: Order
    overlapping: bool
    rounds: int
    a: Tally
    b: Tally
    matched: int
    succeeded: int
    only_a: int
    only_b: int
    figures: tuple[Compared, ...]

    def to_json(self) -> dict[str, Any]:
        """The object of the document."""
        plain = ("load", "concurrency", "sequence", "rounds", "matched", "succeeded", "only_a", "only_b")
        return {
            "profile": self.name,
            **{name: getattr(self, name) for name in plain},
            "order": self.order.value,
            "a": asdict(self.a),
            "b": asdict(self.b),
            "figures": [item.to_json() for item in self.figures],
        }

    def losses(self) -> Iterator[str]:
        """Sentences on what B lost and A did not."""
        return verdicts.losses(
            self.name,
            failed=(self.a.failed, self.b.failed),
            natural=(self.a.natural, self.b.natural),
            unknown=self.b.unknown,
        )


def compare_profiles(pairing: Pairing, *, within: float, one_machine: bool) -> tuple[ComparedProfile, ...]:
    """Every profile that all bundles have, in the order of the first."""
    runs = [evidence.run for pair in pairing for evidence in pair]
    shared = set.intersection(*({item["name"] for item in run["profiles"]} for run in runs))
    return tuple(
        _profile(pairing, item, within=within, one_machine=one_machine)
        for item in runs[0]["profiles"]
        if item["name"] in shared
    )


def _profile(pairing: Pairing, profile: dict[str, Any], *, within: float, one_machine: bool) -> ComparedProfile:
    name = profile["name"]
    found = [(a, b, item) for a, b in pairing for item in rounds_of(a, b, name)]
    rounds = [item for _, _, item in found]
    blocks = [
        block(evidence, records, side)
        for a, b, item in found
        for evidence, records, side in ((a, item.a, "A"), (b, item.b, "B"))
    ]
    sequence, order = order_of(blocks)
    figures = FIGURES if is_timed(profile["entries"], pairing[0][0].workload) else ()
    overlapping = one_machine and order is Order.OVERLAPPING
    return ComparedProfile(
        name=name,
        load=profile["load"],
        concurrency=profile["concurrency"],
        sequence=sequence,
        order=order,
        overlapping=overlapping,
        rounds=len(rounds),
        a=Tally.of([record for item in rounds for record in item.a]),
        b=Tally.of([record for item in rounds for record in item.b]),
        matched=sum(item.matched for item in rounds),
        succeeded=sum(len(item.pairs) for item in rounds),
        only_a=sum(item.only_a for item in rounds),
        only_b=sum(item.only_b for item in rounds),
        figures=tuple(_compared(figure, rounds, within, overlapping) for figure in figures),
    )


def _compared(figure: Figure, rounds: Sequence[Round], within: float, overlapping: bool) -> Compared:
    estimate = estimate_of(figure, rounds)
    verdict = verdicts.judge(estimate, within=within, overlapping=overlapping)
    return Compared(figure=figure, estimate=estimate, verdict=verdict)
