"""The sampler against an independent slow one, its edges, its frequencies, and its blindness to row and batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from torch import Tensor

from engine.contract import StageSampling
from engine.sampling import NEVER, StageTable, draw, penalise
from tests.engine import slow_sampler as slow

FP32_ROUNDING = 2e-6
OPEN: dict[str, Any] = {"temperature": 1.0, "top_k": 0, "top_p": 1.0}


def choose(logits: Tensor, stages: Sequence[StageSampling], uniform: Sequence[float]) -> list[int]:
    """Draw one id for each row of logits [B, V]."""
    table = StageTable(len(stages), torch.device("cpu"))
    for row, stage in enumerate(stages):
        table.write(row, stage)
    chosen: list[int] = draw(logits.clone(), table.first(len(stages)), torch.tensor(uniform)).tolist()
    return chosen


def possible(logits: Sequence[float], stage: StageSampling) -> set[int]:
    """Every id that some uniform number draws."""
    grid = [index / 512 for index in range(512)]
    rows = torch.tensor([list(logits)]).expand(len(grid), -1)
    return set(choose(rows, [stage] * len(grid), grid))


stages = st.builds(
    StageSampling,
    temperature=st.sampled_from([0.01, 0.3, 0.9, 1.0, 2.0]),
    top_k=st.sampled_from([0, 1, 2, 5, 50, 3_072]),
    top_p=st.sampled_from([1.0, 0.95, 0.5, 0.1]),
)
values = st.lists(st.floats(-8, 8, width=32), min_size=6, max_size=24)
fractions = st.integers(0, 2**24 - 1).map(lambda step: step / 2**24)


@settings(deadline=None, max_examples=200)
@given(logits=values, stage=stages, uniform=fractions)
def test_draws_agree_with_the_slow_sampler(logits: list[float], stage: StageSampling, uniform: float) -> None:
    chances = slow.probabilities(logits, stage)
    assume(slow.margin(chances, uniform) > FP32_ROUNDING)
    assume(_clear_nucleus(logits, stage))
    assert choose(torch.tensor([logits]), [stage], [uniform]) == [slow.pick(chances, uniform)]


def _clear_nucleus(logits: list[float], stage: StageSampling) -> bool:
    """Whether no rounding and no tie decides which id is the last of the nucleus."""
    if stage.top_p == 1.0:
        return True
    ranked = sorted(slow.probabilities(logits, StageSampling(temperature=stage.temperature, top_k=stage.top_k)))[::-1]
    masses = [math.fsum(ranked[: count + 1]) for count in range(len(ranked))]
    last = next(index for index, mass in enumerate(masses) if mass >= stage.top_p or index == len(masses) - 1)
    tied = last + 1 < len(ranked) and math.isclose(ranked[last], ranked[last + 1], rel_tol=1e-5) and ranked[last] > 0
    return not tied and all(abs(mass - stage.top_p) > FP32_ROUNDING for mass in masses)


@settings(deadline=None, max_examples=100)
@given(logits=values, seen=st.sets(st.integers(0, 5)), penalty=st.sampled_from([0.1, 0.9, 1.0, 1.05, 2.0]))
def test_the_penalty_agrees_with_the_slow_one(logits: list[float], seen: set[int], penalty: float) -> None:
    mask = torch.zeros(1, len(logits), dtype=torch.bool)
    mask[0, list(seen)] = True
    found = penalise(torch.tensor([logits]), mask, torch.tensor([penalty]))[0].tolist()
    assert found == pytest.approx(slow.penalised(logits, seen, penalty), rel=1e-6)


def test_the_penalty_weakens_both_signs_and_leaves_each_row_its_own() -> None:
    logits = torch.tensor([[2.0, -2.0, 0.0, 1.0]]).repeat(2, 1)
    seen = torch.tensor([[True, True, True, False], [False, False, False, True]])
    found = penalise(logits, seen, torch.tensor([2.0, 4.0]))
    assert found.tolist() == [[1.0, -4.0, 0.0, 1.0], [2.0, -2.0, 0.0, 0.25]]


def test_ties_with_the_kth_are_kept() -> None:
    assert possible([1.0, 2.0, 1.0, 0.5, 1.0], StageSampling(temperature=1.0, top_k=2)) == {0, 1, 2, 4}


def test_top_k_counts_ids_and_zero_or_too_many_switch_it_off() -> None:
    logits = [0.3, 0.1, 0.2, 0.0]
    assert possible(logits, StageSampling(temperature=1.0, top_k=1)) == {0}
    assert possible(logits, StageSampling(temperature=1.0, top_k=3)) == {0, 1, 2}
    assert possible(logits, StageSampling(**OPEN)) == {0, 1, 2, 3}
    assert possible(logits, StageSampling(temperature=1.0, top_k=3_072)) == {0, 1, 2, 3}


def test_top_p_keeps_the_id_that_reaches_the_mass_and_no_other() -> None:
    logits = [math.log(chance) for chance in (0.1, 0.4, 0.2, 0.3)]
    for top_p, kept in ((0.39, {1}), (0.41, {1, 3}), (0.69, {1, 3}), (0.71, {1, 3, 2}), (0.91, {0, 1, 2, 3})):
        assert possible(logits, StageSampling(temperature=1.0, top_k=0, top_p=top_p)) == kept


def test_the_smallest_top_p_keeps_one_id() -> None:
    assert possible([0.0, 0.1, 0.0], StageSampling(temperature=2.0, top_k=0, top_p=1e-6)) == {1}


def test_top_p_measures_what_top_k_left() -> None:
    """0.4 of 0.7 is 57 %: after top_k 2, a top_p of 0.5 keeps one id; over the whole vocabulary it keeps two."""
    logits = [math.log(chance) for chance in (0.1, 0.4, 0.2, 0.3)]
    assert possible(logits, StageSampling(temperature=1.0, top_k=2, top_p=0.5)) == {1}
    assert possible(logits, StageSampling(temperature=1.0, top_k=0, top_p=0.5)) == {1, 3}


def test_temperature_acts_before_top_p() -> None:
    logits = [math.log(chance) for chance in (0.7, 0.2, 0.1)]
    assert possible(logits, StageSampling(temperature=1.0, top_k=0, top_p=0.69)) == {0}
    assert possible(logits, StageSampling(temperature=2.0, top_k=0, top_p=0.69)) == {0, 1}


def test_the_coldest_temperature_takes_the_best_without_overflow() -> None:
    logits = torch.tensor([[-30.0, 40.0, 39.0, NEVER]])
    assert choose(logits, [StageSampling(temperature=0.01, top_k=0)], [0.999]) == [1]


def test_an_excluded_id_is_never_drawn_even_at_the_ends_of_the_interval() -> None:
    logits = torch.tensor([[NEVER, 0.0, NEVER, 0.0, NEVER]])
    stage = StageSampling(**OPEN)
    assert choose(logits, [stage], [0.0]) == [1]
    assert choose(logits, [stage], [1.0 - 2.0**-24]) == [3]


def test_greedy_rows_beside_sampled_rows_each_follow_their_own_rule() -> None:
    logits = torch.tensor([0.0, 1.0, 0.9, 0.8]).repeat(3, 1)
    greedy, sampled = StageSampling(strategy="greedy"), StageSampling(**OPEN)
    assert choose(logits, [greedy, sampled, greedy], [0.999, 0.999, 0.0]) == [1, 3, 1]
    assert choose(logits, [greedy] * 3, [0.999] * 3) == [1] * 3


def test_frequencies_are_the_probabilities() -> None:
    """A chi-square over 10,000 fixed uniforms in each of four settings; nothing here is left to chance."""
    logits = torch.linspace(-2, 2, 40)[torch.randperm(40, generator=torch.Generator().manual_seed(0))]
    count = 10_000
    uniform = torch.rand(count, generator=torch.Generator().manual_seed(1))
    for stage in (
        StageSampling(**OPEN),
        StageSampling(temperature=0.5, top_k=10),
        StageSampling(temperature=0.9, top_k=0, top_p=0.8),
        StageSampling(temperature=2.0, top_k=20, top_p=0.9),
    ):
        drawn = torch.tensor(choose(logits.expand(count, -1), [stage] * count, uniform.tolist()))
        counts = drawn.bincount(minlength=40).double()
        expected = torch.tensor(slow.probabilities(logits.tolist(), stage), dtype=torch.float64) * count
        assert counts[expected == 0].sum() == 0
        kept = expected > 0
        assert chisquare(counts[kept].numpy(), expected[kept].numpy()).pvalue > 1e-4


def test_a_row_draws_the_same_wherever_it_stands_and_whoever_is_beside_it() -> None:
    generator = torch.Generator().manual_seed(4)
    logits = torch.randn(16, 1_088, generator=generator) * 3
    uniform = torch.rand(16, generator=generator).tolist()
    pool = [
        StageSampling(), StageSampling(**OPEN), StageSampling(temperature=2.0, top_k=0, top_p=0.9),
        StageSampling(strategy="greedy"), StageSampling(temperature=0.01), StageSampling(top_k=300, top_p=0.5),
    ]  # fmt: skip
    chosen = [pool[row % len(pool)] for row in range(16)]
    alone = [choose(logits[row : row + 1], [chosen[row]], [uniform[row]])[0] for row in range(16)]
    assert choose(logits, chosen, uniform) == alone
    order = torch.randperm(16, generator=generator).tolist()
    mixed = choose(logits[order], [chosen[row] for row in order], [uniform[row] for row in order])
    assert mixed == [alone[row] for row in order]


def test_settings_move_with_their_row() -> None:
    table = StageTable(3, torch.device("cpu"))
    table.write(0, StageSampling(strategy="greedy"))
    table.write(2, StageSampling(**OPEN))
    table.move(2, 0)
    logits = torch.tensor([[0.0, 1.0, 0.9, 0.8]])
    assert draw(logits, table.first(1), torch.tensor([0.999])).tolist() == [3]


def test_logits_that_are_no_numbers_draw_within_the_vocabulary() -> None:
    table = StageTable(1, torch.device("cpu"))
    assert 0 <= int(draw(torch.full((1, 8), float("nan")), table.first(1), torch.tensor([0.5]))) < 8
