"""Statistics against scipy and against simulation."""

from __future__ import annotations

import random
import statistics as plain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom

from qualification.bench import statistics


@pytest.mark.parametrize(("q", "least"), [(0.5, 5), (0.95, 59), (0.99, 299)])
def test_the_bound_of_a_quantile_exists_from_its_least_n_on(q: float, least: int) -> None:
    assert statistics.upper_rank(least - 1, q) is None
    assert statistics.upper_rank(least, q) == least
    assert statistics.quantile_upper95(range(least - 1), q) is None
    assert statistics.quantile_upper95(range(least), q) == least - 1


@pytest.mark.parametrize("q", [0.5, 0.95, 0.99])
@pytest.mark.parametrize("n", [59, 60, 200, 299, 300, 598, 2600])
def test_the_rank_is_the_smallest_that_covers(n: int, q: float) -> None:
    rank = statistics.upper_rank(n, q)
    if rank is None:
        assert 1 - q**n < 0.95
        return
    assert binom.cdf(rank - 1, n, q) >= 0.95
    assert rank == 1 or binom.cdf(rank - 2, n, q) < 0.95


def test_the_median_bound_covers_in_simulation() -> None:
    draw = random.Random(7)
    bounds = [statistics.quantile_upper95([draw.random() for _ in range(24)], 0.5) for _ in range(2_000)]
    covered = sum(bound is not None and bound >= 0.5 for bound in bounds)
    assert covered / 2_000 >= 0.94


@pytest.mark.parametrize("n", [1, 2, 24, 59, 120, 598, 2600])
def test_share_bounds_are_clopper_pearson(n: int) -> None:
    for events in sorted({0, 1, 2, n // 2, n - 1, n} & set(range(n + 1))):
        upper = 1.0 if events == n else float(beta.ppf(0.95, events + 1, n - events))
        lower = 0.0 if events == 0 else float(beta.ppf(0.05, events, n - events + 1))
        assert statistics.share_upper95(events, n) == pytest.approx(upper, abs=1e-12)
        assert statistics.share_lower95(events, n) == pytest.approx(lower, abs=1e-12)


def test_the_figures_that_the_rules_quote() -> None:
    assert statistics.share_upper95(0, 24) == pytest.approx(0.117, abs=5e-4)
    assert statistics.share_upper95(0, 598) <= 0.005 < statistics.share_upper95(0, 597)
    assert statistics.share_upper95(1, 598) > 0.005


@pytest.mark.parametrize(("events", "n"), [(0, 0), (-1, 3), (4, 3)])
def test_a_share_of_nothing_is_refused(events: int, n: int) -> None:
    with pytest.raises(ValueError, match="a share needs"):
        statistics.share_upper95(events, n)


@given(st.integers(1, 3_000), st.floats(1e-9, 1 - 1e-9), st.data())
def test_binomial_distribution(n: int, p: float, data: st.DataObject) -> None:
    k = data.draw(st.integers(-1, n))
    assert statistics.binomial_cdf(k, n, p) == pytest.approx(float(binom.cdf(k, n, p)), abs=1e-11)


@pytest.mark.parametrize(("k", "p", "expected"), [(-1, 0.5, 0.0), (3, 0.5, 1.0), (0, 0.0, 1.0), (2, 1.0, 0.0)])
def test_binomial_edges(k: int, p: float, expected: float) -> None:
    assert statistics.binomial_cdf(k, 3, p) == expected


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_centre(values: list[float]) -> None:
    assert statistics.median(values) == pytest.approx(plain.median(values))
    assert statistics.mean(values) == pytest.approx(plain.fmean(values), abs=1e-9)


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=60), st.sampled_from([0.5, 0.95, 0.99]))
def test_nearest_rank(values: list[int], q: float) -> None:
    found = statistics.quantile(values, q)
    assert found in values
    assert sum(value <= found for value in values) >= q * len(values)
    smaller = [value for value in values if value < found]
    assert len(smaller) < q * len(values)


@pytest.mark.parametrize("compute", [statistics.median, statistics.mean])
def test_nothing_has_no_centre(compute: object) -> None:
    with pytest.raises(ValueError, match="of nothing"):
        compute([])  # type: ignore[operator]
