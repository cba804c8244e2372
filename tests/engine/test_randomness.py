"""A request's uniforms are the documented counter stream and nothing else."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.contract import MAX_SEED
from engine.randomness import uniforms
from tests.engine.philox import philox, words

# Known answers published with the Random123 library (philox4x64, 10 rounds): zero and all-ones inputs.
ZEROS = (0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B)
ONES = (0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0)


def test_the_second_opinion_gives_the_published_known_answers() -> None:
    assert philox(0, 0) == ZEROS
    assert philox(2**256 - 1, 2**128 - 1) == ONES


@pytest.mark.parametrize("seed", [0, 1, 7, 2**32, MAX_SEED])
def test_the_stream_is_philox_keyed_by_the_seed_top_24_bits_first(seed: int) -> None:
    found = uniforms(seed, frames=5, code_groups=16)
    expected = [word >> 40 for word in islice(words(seed), 80)]
    assert (found.astype(np.float64) * 2**24).ravel().tolist() == expected


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, MAX_SEED), frames=st.integers(1, 40), more=st.integers(0, 40), groups=st.integers(2, 16))
def test_a_longer_ceiling_only_appends(seed: int, frames: int, more: int, groups: int) -> None:
    short = uniforms(seed, frames=frames, code_groups=groups)
    long = uniforms(seed, frames=frames + more, code_groups=groups)
    assert short.shape == (frames, groups)
    assert short.dtype == np.float32
    assert np.array_equal(short, long[:frames])


def test_numbers_never_reach_one_and_fill_the_interval_evenly() -> None:
    numbers = uniforms(3, frames=20_000, code_groups=16)
    assert numbers.min() >= 0.0
    assert numbers.max() < 1.0
    assert np.float32(1.0 - 2.0**-24) < np.float32(1.0)  # the largest possible value is still below one in FP32
    counts, _ = np.histogram(numbers, bins=64, range=(0.0, 1.0))
    expected = numbers.size / 64
    statistic = float(((counts - expected) ** 2 / expected).sum())
    assert statistic < 120  # 63 degrees of freedom: 120 is exceeded once in 50,000 streams, and this one is fixed


def test_neighbouring_seeds_share_nothing() -> None:
    first, second = (uniforms(seed, frames=100, code_groups=16) for seed in (41, 42))
    assert np.mean(first == second) < 0.01
    assert abs(float(np.corrcoef(first.ravel(), second.ravel())[0, 1])) < 0.1
