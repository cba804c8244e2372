"""The drawing kernel keeps and draws what `engine.sampling` does."""

from __future__ import annotations

import pytest
import torch

from engine.contract import Sampling, StageSampling
from engine.kernels.sampling import choose, commit
from engine.plain_ops import draw_code0
from engine.sampling import draw
from tests.engine.kernels.bench import Bench, load_tiny, make_bench

STAGES = [
    StageSampling(),
    StageSampling(strategy="greedy"),
    StageSampling(top_k=1),
    StageSampling(top_k=7, temperature=0.3),
    StageSampling(top_k=0, top_p=0.5),
    StageSampling(top_k=20, top_p=0.9, temperature=2.0),
    StageSampling(top_k=64),
    StageSampling(top_k=0),
]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return make_bench(load_tiny(tmp_path_factory.mktemp("sampling")), rows=len(STAGES))


def admit(bench: Bench, seed: int) -> None:
    for row, stage in enumerate(STAGES):
        sampling = Sampling(talker=stage, predictor=stage, repetition_penalty=1.3)
        bench.rows.admit(row, seed=seed * 100 + row, sampling=sampling, prompt=5, trailing=torch.zeros(0, 64))
        bench.rows.frame[row] = row


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ties", [False, True])
def test_predictor_draw(bench: Bench, seed: int, ties: bool) -> None:
    admit(bench, seed)
    logits = torch.randn(len(STAGES), 64, generator=torch.Generator().manual_seed(seed)) * 3
    if ties:
        logits = logits.round()
        logits[4:6] += torch.arange(64) / 64  # exact ties at the border of top-p may fall either way
    rows = bench.rows
    index = rows.index
    expected = draw(logits, rows.predictor_sampling.first(len(STAGES)), rows.uniform[index, rows.frame, 3])
    codes = torch.full((len(STAGES), 16), -1)
    choose(logits, rows, codes, 3, None)
    assert torch.equal(codes[:, 3], expected)
    assert torch.equal(rows.codes[index, rows.frame, 3], expected)
    assert torch.equal(codes[:, 0], rows.code0)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_talker_draw_and_history(bench: Bench, seed: int, first: bool) -> None:
    admit(bench, seed)
    rows, vocabulary = bench.rows, bench.model.talker.config.vocab
    eos = bench.model.talker.config.codec_ids.eos
    generator = torch.Generator().manual_seed(seed)
    rows.seen.copy_(torch.rand(rows.seen.shape, generator=generator) < 0.3)
    logits = torch.randn(len(STAGES), vocabulary, generator=generator) * 2
    logits[:, eos] = 6.0  # likely, where it is allowed
    logits[:, eos + 1] = 50.0  # never allowed
    if first:
        rows.frame.zero_()
    expected = draw_code0(logits.clone(), rows, slice(0, len(STAGES)), rows.frame, eos)
    drawn = torch.full((len(STAGES),), -1)
    before = rows.seen.clone()
    commit(logits, rows, rows.index, reserved=vocabulary - 1024, eos=eos, step=None, out=drawn)
    assert torch.equal(drawn, expected)
    assert torch.equal(rows.code0, expected)
    before[rows.index, expected] = True
    assert torch.equal(rows.seen, before)
    assert (drawn[rows.frame >= 2] == eos).any() or first
    assert not (drawn[rows.frame < 2] == eos).any()


def test_extreme_logits(bench: Bench) -> None:
    admit(bench, 1)
    logits = torch.full((len(STAGES), 64), float("-inf"))
    logits[:, 9] = -3e37
    codes = torch.full((len(STAGES), 16), -1)
    choose(logits, bench.rows, codes, 1, None)
    assert torch.equal(codes[:, 1], torch.full((len(STAGES),), 9))
    tiny = torch.full((len(STAGES), 64), 1e-40)
    tiny[:, 5] = 2e-40
    choose(tiny, bench.rows, codes, 1, None)
    assert codes[1, 1] == 5
    assert ((codes[:, 1] >= 0) & (codes[:, 1] < 64)).all()
