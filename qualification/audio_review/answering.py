"""The ways in which the checks of the audio review build their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from qualification.audio_review.figures import ClipReview
from qualification.audio_review.policy import ReviewPolicy
from qualification.gates.answers import Figure, listed
from qualification.policy import GateEntry
from qualification.results import CONFIDENCE, EXPLAINED, Comparison, Derivation, GateResult, Outcome, decide

_AUDIO = "audio/*.wav"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A check that is about to be answered, in the policy's words."""

    policy: ReviewPolicy
    entry: GateEntry

    def give(
        self,
        outcome: Outcome,
        *,
        n: int,
        detail: str,
        field: str,
        estimator: str = "count",
        figure: Figure | None = None,
        reason: str | None = None,
    ) -> GateResult:
        """A result; `field` and `estimator` say which figure of the utterances it rests on."""
        explained = outcome in EXPLAINED
        return GateResult(
            id=self.entry.id,
            title=self.entry.title,
            claim=self.entry.claim,
            outcome=outcome,
            n=n,
            detail=detail,
            observed=figure.observed if figure else None,
            limit=figure.limit if figure else None,
            bound=figure.bound if figure else None,
            confidence=CONFIDENCE if figure and figure.bound is not None else None,
            unit=figure.unit if figure else None,
            comparison=figure.comparison if figure else None,
            reason_code=reason if explained else None,
            needed=self.entry.needed if explained else None,
            owner=self.entry.owner if explained else None,
            derivations=(Derivation(file=_AUDIO, field=field, estimator=estimator),) if n else (),
        )

    def decide(self, *, n: int, detail: str, field: str, estimator: str, figure: Figure) -> GateResult:
        """Passed only if the bound lies inside the limit."""
        outcome = decide(observed=figure.observed, bound=figure.bound, limit=figure.limit, comparison=figure.comparison)
        return self.give(
            outcome, n=n, detail=detail, field=field, estimator=estimator, figure=figure, reason="bound_outside_limit"
        )


def figure(observed: float, limit: float, comparison: Comparison, unit: str, bound: float | None = None) -> Figure:
    """A figure against its limit."""
    return Figure(observed=observed, limit=limit, comparison=comparison, unit=unit, bound=bound)


def nothing(answer: Answer, reason: str, detail: str) -> GateResult:
    """Not performed, and why."""
    return answer.give(Outcome.NOT_PERFORMED, n=0, detail=detail, field="", reason=reason)


def each(
    answer: Answer,
    clips: Sequence[ClipReview],
    fault: Callable[[ClipReview], str | None],
    field: str,
    estimator: str,
    aside: str = "",
) -> GateResult:
    """Failed if `fault` has a word for any utterance."""
    if not clips:
        return nothing(answer, "no_utterance", "No stored utterance could be read.")
    faults = [f"{clip.path}: {said}" for clip in clips if (said := fault(clip)) is not None]
    detail = f"{len(faults)} of {len(clips)}: {listed(faults)}." if faults else f"All of {len(clips)}."
    outcome = Outcome.FAILED if faults else Outcome.PASSED
    return answer.give(outcome, n=len(clips), detail=detail + aside, field=field, estimator=estimator)


def whole(
    answer: Answer,
    values: Mapping[str, float],
    field: str,
    unit: str,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
) -> GateResult:
    """The worst value of all utterances against one limit."""
    if not values:
        return nothing(answer, "no_utterance", "No stored utterance has such a figure.")
    most = at_most is not None
    limit = at_most if at_most is not None else at_least
    assert limit is not None  # one of the two is given
    worst = max(values.values()) if most else min(values.values())
    beyond = [f"{path}: {value:.3f}" for path, value in values.items() if (value > limit if most else value < limit)]
    detail = f"{len(beyond)} of {len(values)}: {listed(beyond)}." if beyond else f"All of {len(values)}."
    return answer.give(
        Outcome.FAILED if beyond else Outcome.PASSED,
        n=len(values),
        detail=detail,
        field=field,
        estimator="max" if most else "min",
        figure=figure(worst, limit, Comparison.AT_MOST if most else Comparison.AT_LEAST, unit),
    )
