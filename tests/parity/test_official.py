"""Parity with the official code: prompt rows, greedy codes, waveform, and any partition into packets."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from engine.checkpoint import LoadedModel, load_model
from engine.contract import Sampling, StageSampling
from engine.prompt import PromptPlan, prompt_rows, trailing_rows
from engine.prompt_mode import TextMode
from engine.rows import RowLimits
from engine.runner import Runner
from tests.engine.tiny_checkpoint import TinyShape, write_tiny_checkpoint
from tests.parity.official import Generated, OfficialModel, Utterance

pytestmark = pytest.mark.parity

FRAMES = 80
SHAPES = {
    "grouped": TinyShape(seed=1, ends=False),
    "plain-attention": TinyShape(kv_heads=4, layers=3, window=5, seed=2, ends=False),
    "equal-width": TinyShape(predictor_hidden=64, seed=3, ends=False),
    "short-window": TinyShape(hidden=96, heads=2, kv_heads=1, window=3, seed=4, ends=False),
}
BATCHES = {
    "instruction-and-language": [
        Utterance(text="The kettle is on, sit down.", instruction="A calm, warm adult male voice.", language="English")
    ],
    "auto-without-instruction": [Utterance(text="Ein Satz ohne Anweisung.", instruction="", language="Auto")],
    "unequal": [
        Utterance(text="Short.", instruction="", language="Auto"),
        Utterance(
            text="Das ist ein längerer Satz, 12 Wörter etwa.", instruction="Bright young voice", language="German"
        ),
        Utterance(
            text="你好，世界。", instruction="A very slow and deep old voice, almost a whisper.", language="Chinese"
        ),
    ],
}
GREEDY = Sampling(talker=StageSampling(strategy="greedy"), predictor=StageSampling(strategy="greedy"))


@pytest.fixture(scope="module", params=SHAPES.values(), ids=SHAPES.keys())
def directory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("parity"), request.param)


@pytest.fixture(scope="module")
def official(directory: Path) -> OfficialModel:
    return OfficialModel(directory)


@pytest.fixture(scope="module")
def ours(directory: Path) -> LoadedModel:
    return load_model(directory, device=torch.device("cpu"), dtype=torch.float32)


def plans(model: LoadedModel, batch: list[Utterance], mode: TextMode) -> list[PromptPlan]:
    return [
        model.prompts.plan(text=u.text, instruction=u.instruction, language=u.language.lower(), mode=mode)
        for u in batch
    ]


@pytest.mark.parametrize("mode", list(TextMode))
@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES.keys())
def test_prompt_rows_and_greedy_codes(
    official: OfficialModel, ours: LoadedModel, batch: list[Utterance], mode: TextMode
) -> None:
    expected = official.generate(batch, frames=FRAMES, full_text=mode is TextMode.FULL)
    planned = plans(ours, batch, mode)
    _assert_rows_equal(ours, planned, expected)
    runner = Runner(ours, RowLimits(rows=len(batch), positions=512, frames=FRAMES, trailing=128))
    for row, plan in enumerate(planned):
        runner.prefill(row, plan, seed=row, sampling=GREEDY)
    for _ in range(FRAMES):
        runner.step([True] * len(batch))
    for row, codes in enumerate(expected.codes):
        frames = codes.shape[0]
        assert frames >= 64, "the random model ended early; choose another seed"
        assert torch.equal(runner.codes(row, frames), codes)


def _assert_rows_equal(ours: LoadedModel, planned: list[PromptPlan], expected: Generated) -> None:
    for plan, prefill, trailing in zip(planned, expected.prefill, expected.trailing, strict=True):
        torch.testing.assert_close(prompt_rows(ours.talker, plan, ours.device), prefill, rtol=0, atol=1e-6)
        rows = trailing_rows(ours.talker, plan, ours.device)
        torch.testing.assert_close(rows, trailing[: rows.shape[0]], rtol=0, atol=1e-6)


@pytest.mark.parametrize("frames", [1, 7, 96])
def test_waveform_of_full_pass_and_of_any_partition(official: OfficialModel, ours: LoadedModel, frames: int) -> None:
    codes = torch.randint(0, 64, (frames, 16), generator=torch.Generator().manual_seed(frames))
    expected = official.decode(codes)
    assert expected.abs().max() < 1.0, "a clamped waveform hides differences"
    full = ours.codec(codes.T[None])[0]
    torch.testing.assert_close(full, expected, rtol=0, atol=1e-5)
    for seed in range(3):
        torch.testing.assert_close(_streamed(ours, codes, seed), expected, rtol=0, atol=1e-5)


def _streamed(ours: LoadedModel, codes: torch.Tensor, seed: int) -> torch.Tensor:
    chance, state = random.Random(seed), ours.codec.new_state(1, ours.device)
    pieces, done = [], 0
    while done < codes.shape[0]:
        size = chance.randint(1, 6)
        pieces.append(ours.codec(codes[done : done + size].T[None], state)[0])
        done += size
    return torch.cat(pieces)
