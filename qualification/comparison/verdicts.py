"""From an estimate to a word, and from all words to the answer of a release gate.

Each figure is a cost, less is better, so a ratio B / A over 1 is worse. A difference is called one only where the 95 %
interval excludes 1 over at least six paired rounds; no difference only where the whole interval lies within the margin.
Everything else cannot be told, and says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from qualification.comparison.bootstrap import Estimate

ROUNDS_NEEDED: Final = 6
DIGITS: Final = 6  # decimals of every figure, so that two machines write and decide the same


class Word(StrEnum):
    """What is said of B against A."""

    BETTER = "better"
    WORSE = "worse"
    NO_DIFFERENCE = "no_difference"
    CANNOT_TELL = "cannot_tell"


class Gate(StrEnum):
    """`holds`: the bound of every figure lies inside the limit."""

    HOLDS = "holds"
    WORSE = "worse"
    CANNOT_TELL = "cannot_tell"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A word for one figure; `reason` is a code, set where it cannot be told."""

    word: Word
    reason: str | None = None


def judge(estimate: Estimate | None, *, within: float, overlapping: bool) -> Verdict:
    """The word for an estimate of B / A; None: nothing could be matched. `within`: the margin, 0.05 for 5 %."""
    reason = _undecidable(estimate, overlapping)
    if reason is not None or estimate is None or estimate.low is None or estimate.high is None:
        return Verdict(word=Word.CANNOT_TELL, reason=reason)
    if estimate.low > 1 or estimate.high < 1:
        return Verdict(word=Word.WORSE if estimate.low > 1 else Word.BETTER)
    if resolution(estimate) <= within:
        return Verdict(word=Word.NO_DIFFERENCE)
    return Verdict(word=Word.CANNOT_TELL, reason="interval_too_wide")


def resolution(estimate: Estimate) -> float:
    """The least margin that holds the whole interval, in either direction; an estimate without interval has none."""
    if estimate.low is None or estimate.high is None:
        raise ValueError("an estimate of one round has no interval")
    return round(max(estimate.high, 1 / estimate.low, 1.0) - 1, DIGITS)


def sentence(estimate: Estimate | None, verdict: Verdict) -> str:
    """The verdict for people."""
    if verdict.word is Word.CANNOT_TELL or estimate is None or estimate.low is None or estimate.high is None:
        return f"cannot tell: {_REASONS[verdict.reason or 'nothing_matched']}"
    if verdict.word is Word.NO_DIFFERENCE:
        return f"no difference within {resolution(estimate):.1%}"
    size = abs(estimate.ratio - 1)
    return f"{verdict.word.value} by {size:.1%} ({estimate.low - 1:+.1%} to {estimate.high - 1:+.1%})"


def gate(
    figures: Iterable[tuple[str, Estimate | None, bool]], limit: float, counts: Iterable[str]
) -> tuple[Gate, list[str]]:
    """The answer to `--fail-if-worse`, with its reasons.

    Args:
        figures: title, estimate and whether the runs overlapped, of every figure.
        limit: 0.03 for 3 %.
        counts: sentences on requests that B lost and A did not: no figure holds them, so nothing is passed over them.
    """
    worse, unclear = [], list(counts)
    for title, estimate, overlapping in figures:
        reason = _undecidable(estimate, overlapping)
        if reason is not None or estimate is None or estimate.low is None or estimate.high is None:
            unclear.append(f"{title}: {_REASONS[reason or 'nothing_matched']}")
        elif estimate.low > 1 + limit:
            worse.append(f"{title}: at least {estimate.low - 1:.1%} worse, the limit is {limit:.1%}")
        elif estimate.high > 1 + limit:
            unclear.append(f"{title}: may be up to {estimate.high - 1:.1%} worse, the limit is {limit:.1%}")
    if worse:
        return Gate.WORSE, [*worse, *unclear]
    return (Gate.CANNOT_TELL, unclear) if unclear else (Gate.HOLDS, [])


def losses(profile: str, *, failed: tuple[int, int], natural: tuple[int, int], unknown: int) -> Iterator[str]:
    """Sentences on what B lost against A; an end that nobody knows is no lost end."""
    if failed[1] > failed[0]:
        yield f"{profile}: {failed[1]} requests failed, {failed[0]} of A did; no figure holds them"
    if natural[1] + unknown < natural[0]:
        yield f"{profile}: {natural[1]} natural ends, A has {natural[0]}; no figure holds the rest"


def _undecidable(estimate: Estimate | None, overlapping: bool) -> str | None:
    if estimate is None:
        return "nothing_matched"
    if overlapping:
        return "overlapping_runs"
    return "too_few_rounds" if estimate.rounds < ROUNDS_NEEDED else None


_REASONS: Final = {
    "nothing_matched": "no request succeeded on both sides",
    "overlapping_runs": "both ran on one machine at the same time",
    "too_few_rounds": f"fewer than {ROUNDS_NEEDED} paired rounds, this design cannot tell",
    "interval_too_wide": "the interval holds no difference and more than the margin",
}
