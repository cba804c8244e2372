"""The document `comparison`: two sides, how alike they are, every profile, a headline, and the gate's answer if asked.

A pure function of the bundles and of what the caller asked: no time, no host, no path, so the same bundles give the
same bytes. Failures, and whatever differs although a comparison wants it alike, stand in the headline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from qualification import schema
from qualification.comparison import verdicts
from qualification.comparison.alike import ASPECTS, Difference, differences, subject_of
from qualification.comparison.bootstrap import CONFIDENCE, POWER, RESAMPLES
from qualification.comparison.figures import SEED
from qualification.comparison.order import Order
from qualification.comparison.profiles import ComparedProfile, Pairing, compare_profiles
from qualification.comparison.verdicts import ROUNDS_NEEDED, Word
from qualification.errors import InputError
from qualification.evidence_view import EvidenceView
from qualification.verify.report import Verification

Checked = tuple[EvidenceView, Verification]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the caller asked: the margin of `no difference`, aspects that may differ, and the limit of the gate or None."""

    within: float
    allow: frozenset[str] = frozenset()
    limit: float | None = None


def compare(pairs: Sequence[tuple[Checked, Checked]], asked: Asked) -> dict[str, Any]:
    """Compare verified bundles; `pairs` has A and B of each repetition, in order.

    Raises:
        InputError: one side is not one subject, a bundle comes twice, or an aspect differs that was not allowed to.
    """
    bundles = [item for pair in pairs for item in pair]
    _once_each(bundles)
    pairing: Pairing = [(a[0], b[0]) for a, b in pairs]
    sides = {name: _side([pair[at] for pair in pairs], name) for at, name in enumerate("ab")}
    found = _found(pairing)
    _refuse(found, asked)
    one_machine = not any(item.aspect == "machine" for item in found)
    profiles = compare_profiles(pairing, within=asked.within, one_machine=one_machine)
    if not any(profile.figures for profile in profiles):
        raise InputError("the bundles share no profile that is there for its times; run both with one plan")
    return {
        "schema": schema.urn("comparison"),
        "headline": list(_headline(pairing, sides, profiles, found)),
        **sides,
        "allowed": sorted(asked.allow),
        "differences": [asdict(item) for item in found],
        "design": _design(profiles, asked),
        "profiles": [item.to_json() for item in profiles],
        "gate": None if asked.limit is None else _gate(profiles, asked.limit),
    }


def _once_each(bundles: Sequence[Checked]) -> None:
    names = [_sealed(verification)["manifest_sha256"] for _, verification in bundles]
    if len(set(names)) < len(names):
        raise InputError("a bundle comes twice: compared with itself it tells nothing; give different runs")


def _side(side: Sequence[Checked], name: str) -> dict[str, Any]:
    subjects = [subject_of(evidence) for evidence, _ in side]
    if any(subject != subjects[0] for subject in subjects):
        raise InputError(f"the bundles of side {name.upper()} are not of one subject; give A and B in turn: A B A B")
    bundles = [
        {
            **{key: _sealed(verification)[key] for key in ("run_id", "manifest_sha256", "tier", "verdict")},
            "notes": sorted({finding.code for finding in verification.findings}),
        }
        for _, verification in side
    ]
    return {"subject": subjects[0], "bundles": bundles}


def _sealed(verification: Verification) -> dict[str, Any]:
    assert verification.sealed is not None  # a bundle that says nothing of itself was refused before
    return dict(vars(verification.sealed))


def _found(pairing: Pairing) -> tuple[Difference, ...]:
    first, *others = [evidence for pair in pairing for evidence in pair]
    return tuple(dict.fromkeys(item for other in others for item in differences(first, other)))


def _refuse(found: Sequence[Difference], asked: Asked) -> None:
    refused = [item for item in found if item.aspect not in asked.allow]
    if refused:
        aspects = ",".join(sorted({item.aspect for item in refused}))
        told = "; ".join(str(item) for item in refused[:5]) + ("; and more" if len(refused) > 5 else "")
        raise InputError(f"not comparable: {told}. Measure both alike, or ask for it with --allow {aspects}")


def _design(profiles: Sequence[ComparedProfile], asked: Asked) -> dict[str, Any]:
    figures = sum(len(profile.figures) for profile in profiles)
    return {
        "rounds_needed": ROUNDS_NEEDED,
        "confidence": CONFIDENCE,
        "power": POWER,
        "resamples": RESAMPLES,
        "seed": SEED,
        "within": asked.within,
        "figures": figures,
        "differences_by_chance": round(figures * (1 - CONFIDENCE), 6),
    }


def _headline(
    pairing: Pairing, sides: dict[str, Any], profiles: Sequence[ComparedProfile], found: Sequence[Difference]
) -> Iterator[str]:
    words = Counter(item.verdict.word for profile in profiles for item in profile.figures)
    told = ", ".join(f"{words[word]} {word.value.replace('_', ' ')}" for word in Word)
    same = " Both are one subject (A/A)." if sides["a"]["subject"] == sides["b"]["subject"] else ""
    yield f"B against A, {words.total()} figures: {told}.{same}"
    yield _requests(profiles)
    for aspect in ASPECTS:
        fields = [item.field for item in found if item.aspect == aspect]
        if fields:
            shown = ", ".join(fields[:5]) + (" and more" if len(fields) > 5 else "")
            yield f"Compared because it was asked for, although the {aspect} differs: {shown}."
    yield from _left_open(pairing)
    yield from _of_design(profiles)


def _left_open(pairing: Pairing) -> Iterator[str]:
    """What no side could be told, so that a pair is less than one request asked of two."""
    views = [evidence for pair in pairing for evidence in pair]
    for side, open_ in (("A", views[::2]), ("B", views[1::2])):
        unset = sorted(frozenset().union(*(evidence.leaves_open for evidence in open_)) - {"eos"})
        if unset:
            yield f"{side} takes no setting of {', '.join(unset)}: a pair has one text, and not all else in common."


def _requests(profiles: Sequence[ComparedProfile]) -> str:
    parts = []
    for name, tallies in (("A", [p.a for p in profiles]), ("B", [p.b for p in profiles])):
        requests, failed = sum(t.requests for t in tallies), sum(t.failed for t in tallies)
        natural, unknown = sum(t.natural for t in tallies), sum(t.unknown for t in tallies)
        of_unknown = f", {unknown} ended nobody knows how" if unknown else ""
        parts.append(f"{name}: {failed} of {requests} requests failed, {natural} ended naturally{of_unknown}")
    return f"{'; '.join(parts)}; {sum(profile.succeeded for profile in profiles)} pairs succeeded on both sides."


def _of_design(profiles: Sequence[ComparedProfile]) -> Iterator[str]:
    few = [
        f"{profile.name} ({profile.rounds})"
        for profile in profiles
        if profile.figures and profile.rounds < ROUNDS_NEEDED
    ]
    if few:
        yield f"Fewer than {ROUNDS_NEEDED} paired rounds, this design cannot tell: {', '.join(few)}."
    for order, text in _ORDERS.items():
        names = [profile.name for profile in profiles if profile.figures and profile.order is order]
        if names:
            yield f"{text}: {', '.join(names)}."


def _gate(profiles: Sequence[ComparedProfile], limit: float) -> dict[str, Any]:
    figures = [
        (f"{profile.name} {item.figure.name}", item.estimate, profile.overlapping)
        for profile in profiles
        for item in profile.figures
    ]
    counts = [text for profile in profiles for text in profile.losses()]
    outcome, reasons = verdicts.gate(figures, limit, counts)
    return {"limit": limit, "outcome": outcome.value, "reasons": reasons}


_ORDERS = {
    Order.ALTERNATING: "The rounds alternated",
    Order.ONE_AFTER_THE_OTHER: "All rounds of one side ran before the other's, so a drift of the machine would look like a "
    "difference",
    Order.MIXED: "The rounds neither alternated nor ran side by side, so a drift of the machine is not kept out",
    Order.OVERLAPPING: "Rounds of both sides overlapped in time; on one machine they measured each other",
}
