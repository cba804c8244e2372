"""The paired bootstrap: coverage on simulated rounds, symmetry, and what it refuses."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student

from qualification.comparison.bootstrap import Estimate, paired_ratio, student_cdf, student_quantile

ROUNDS = st.lists(
    st.lists(st.tuples(st.floats(0.01, 100.0), st.floats(0.01, 100.0)), min_size=1, max_size=4), min_size=1, max_size=9
)


def simulated(
    generator: np.random.Generator, *, rounds: int, effect: float, pairs: int = 5, round_noise: float = 0.02
) -> tuple[list[list[float]], list[list[float]]]:
    """Pairs that share their text's length; the rounds of each subject share a mood."""
    base = np.exp(generator.normal(0, 0.5, size=(1, pairs)))
    moods = np.exp(generator.normal(0, round_noise, size=(2, rounds, 1)))
    noise = np.exp(generator.normal(0, 0.03, size=(2, rounds, pairs)))
    a, b = base * moods * noise
    return a.tolist(), (b * effect).tolist()


def numbers(estimate: Estimate) -> list[float]:
    """The estimate's figures; -1 stands for one that is absent."""
    return [-1.0 if value is None else value for value in vars(estimate).values()]


def coverage(rounds: int, trials: int = 600) -> float:
    generator = np.random.default_rng(20)
    inside = 0
    for _ in range(trials):
        a, b = simulated(generator, rounds=rounds, effect=1.1)
        estimate = paired_ratio(a, b, seed=1, resamples=2000)
        assert estimate.low is not None and estimate.high is not None
        inside += estimate.low <= 1.1 <= estimate.high
    return inside / trials


@pytest.mark.parametrize("rounds", [6, 12])
def test_the_interval_covers_the_truth_about_95_times_in_100(rounds: int) -> None:
    assert 0.92 <= coverage(rounds) <= 0.98  # three standard deviations of 600 trials: 2.7 points


def test_a_tenth_is_found_and_is_about_a_tenth() -> None:
    a, b = simulated(np.random.default_rng(3), rounds=8, effect=1.1)
    estimate = paired_ratio(a, b, seed=1)
    assert estimate.low is not None and estimate.high is not None
    assert 1 < estimate.low < estimate.ratio < estimate.high < 1.2
    assert (estimate.rounds, estimate.pairs) == (8, 40)


def test_the_minimum_detectable_effect_is_found_four_times_in_five() -> None:
    generator = np.random.default_rng(4)
    sigma = math.sqrt(2 * 0.02**2 + 2 * 0.03**2 / 5)  # of one round's mean log ratio
    needed = student.ppf(0.975, 7) + student.ppf(0.8, 7)
    effect = math.exp(needed * sigma / math.sqrt(8))
    found, least = 0, []
    for _ in range(400):
        a, b = simulated(generator, rounds=8, effect=effect)
        estimate = paired_ratio(a, b, seed=1, resamples=2000)
        assert estimate.low is not None and estimate.minimum_detectable is not None
        found += estimate.low > 1
        least.append(estimate.minimum_detectable)
    assert 0.72 <= found / 400 <= 0.88
    assert float(np.median(least)) == pytest.approx(effect - 1, rel=0.15)


def test_one_round_has_no_interval() -> None:
    assert paired_ratio([[1.0, 2.0]], [[2.0, 4.0]], seed=0) == Estimate(
        ratio=2.0, low=None, high=None, minimum_detectable=None, rounds=1, pairs=2
    )


def test_each_round_weighs_the_same() -> None:
    estimate = paired_ratio([[1.0] * 9, [1.0]], [[1.0] * 9, [4.0]], seed=0)
    assert estimate.ratio == pytest.approx(2.0)


def test_the_seed_decides_the_draws() -> None:
    a, b = simulated(np.random.default_rng(5), rounds=7, effect=1.0)
    assert paired_ratio(a, b, seed=1, resamples=200) == paired_ratio(a, b, seed=1, resamples=200)
    assert paired_ratio(a, b, seed=1, resamples=200) != paired_ratio(a, b, seed=2, resamples=200)


@settings(deadline=None, max_examples=60)
@given(rounds=ROUNDS)
def test_exchanging_the_sides_inverts_everything(rounds: list[list[tuple[float, float]]]) -> None:
    a = [[x for x, _ in pairs] for pairs in rounds]
    b = [[y for _, y in pairs] for pairs in rounds]
    forth = paired_ratio(a, b, seed=9, resamples=300)
    back = paired_ratio(b, a, seed=9, resamples=300).inverted()
    assert numbers(back) == pytest.approx(numbers(forth), rel=1e-9, abs=1e-9)


@settings(deadline=None, max_examples=60)
@given(rounds=ROUNDS, factor=st.floats(0.1, 10.0))
def test_a_unit_cancels_out(rounds: list[list[tuple[float, float]]], factor: float) -> None:
    a = [[x for x, _ in pairs] for pairs in rounds]
    b = [[y for _, y in pairs] for pairs in rounds]
    plain = paired_ratio(a, b, seed=9, resamples=300)
    scaled = paired_ratio(
        [[x * factor for x in r] for r in a], [[y * factor for y in r] for r in b], seed=9, resamples=300
    )
    assert numbers(scaled) == pytest.approx(numbers(plain), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ([], [], "at least one; got 0 and 0"),
        ([[1.0]], [[1.0], [1.0]], "got 1 and 2"),
        ([[]], [[]], "round 0: needs pairs"),
        ([[1.0], [1.0]], [[1.0], [1.0, 2.0]], "round 1: needs pairs, at least one; got 1 and 2"),
        ([[0.0]], [[1.0]], "positive"),
        ([[1.0]], [[math.nan]], "finite"),
    ],
)
def test_what_cannot_be_paired_is_refused(a: list[list[float]], b: list[list[float]], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        paired_ratio(a, b, seed=0)


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 8, 11, 40])
def test_students_t_agrees_with_scipy(degrees: int) -> None:
    for point in (-3.0, -0.2, 0.0, 0.7, 2.5):
        assert student_cdf(point, degrees) == pytest.approx(student.cdf(point, degrees), abs=1e-12)
    for share in (0.5, 0.8, 0.975):
        assert student_quantile(share, degrees) == pytest.approx(student.ppf(share, degrees), abs=1e-9)
