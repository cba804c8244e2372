"""Which claim about natural ends a run makes, in one sentence: a rate, coverage alone, or none."""

from __future__ import annotations

from collections.abc import Iterable

from qualification.bench.statistics import share_upper95
from qualification.report.words import figure
from qualification.results import GateResult, Outcome


def natural_ends(results: Iterable[GateResult]) -> str:
    """The sentence, from the gates of coverage and of the bound; empty where natural ends mean nothing."""
    told = {result.id: result for result in results}
    coverage, bound = told.get("eos.coverage"), told.get("eos.bound")
    if coverage is None or bound is None or bound.outcome is Outcome.NOT_APPLICABLE:
        return ""
    covered = _coverage(coverage)
    if bound.outcome is Outcome.NOT_PERFORMED:
        return f"Claim made: {covered}; no rate was measured for a claim." if covered else "No claim is made."
    measured = f"{figure(bound.bound, 'share')} at 95\u202f% confidence, from {bound.n} requests"
    if bound.outcome is Outcome.PASSED:
        return f"Claim made: a rate. At most {measured}, do not end by themselves."
    limit = figure(bound.limit, "share")
    tried = f"The rate of {limit} was tried and is not shown (bound: {measured})."
    return f"Claim made: {covered}. {tried}" if covered else f"No claim is made. {tried}"


def _coverage(coverage: GateResult) -> str:
    if coverage.outcome is not Outcome.PASSED or coverage.limit is None:
        return ""
    languages = int(coverage.limit)
    weak = figure(share_upper95(0, languages), "share")
    return f"coverage of {languages} languages, which by itself bounds the rate only at {weak}"
