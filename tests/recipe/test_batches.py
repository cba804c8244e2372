"""Training batches: every row, target and code where the engine's prompt builder and decode loop would put it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.contract import AUTO
from engine.prompt import PromptBuilder
from engine.prompt_mode import TextMode
from recipe.batches import IGNORED, Corpus, assemble, draw
from recipe.errors import RecipeError
from recipe.languages import BY_CODE
from recipe.prompts import MODES, NONE, build_prompts
from recipe.settings import Bucket, TalkerSettings
from tests.recipe.conftest import Tiny

CLEAN = TalkerSettings(corrupted_frames=0.0, corrupted_codes=0.0, predictor_frames=3)
LENGTH = 160
FRAMES = (7, 40, 12)


@pytest.fixture(scope="module")
def corpus(tiny: Tiny) -> Corpus:
    tables = build_prompts(tiny.sentences, tiny.tokenizer, tiny.talker, descriptions=2, seed=3)
    codes = np.random.default_rng(1).integers(0, 16, (sum(FRAMES), 16)).astype(np.uint8)
    return Corpus(tables, codes, np.array(FRAMES), tiny.talker, torch.device("cpu"))


@pytest.mark.parametrize("mode", range(len(MODES)))
@pytest.mark.parametrize("which", range(3))
def test_a_batch_row_is_the_prompt_then_the_frames(tiny: Tiny, corpus: Corpus, which: int, mode: int) -> None:
    description = 5 if mode != 1 else len(corpus.instruction) - 1  # the last is none
    batch = assemble(corpus, torch.tensor([which]), torch.tensor([mode]), torch.tensor([description]), LENGTH, CLEAN)
    text_mode, explicit = MODES[mode]
    sentence, ids = tiny.sentences[which], tiny.talker.text_ids
    plan = PromptBuilder(tiny.tokenizer, tiny.talker).plan(
        text=sentence.text, language=BY_CODE[sentence.language].field if explicit else AUTO, mode=text_mode
    )
    lead = int(corpus.instruction_length[description])
    assert (lead == 0) == (mode == 1)
    prompt, count = lead + plan.length, FRAMES[which]
    assert batch.text[0, lead:prompt].tolist() == list(plan.text)
    assert batch.control[0, lead:prompt].tolist() == [NONE if code is None else code for code in plan.codec]
    assert batch.control[0, :lead].eq(NONE).all()
    assert batch.control[0, prompt:].eq(NONE).all()
    late = (*plan.trailing, *[ids.tts_pad] * LENGTH)[:count]
    assert batch.text[0, prompt : prompt + count].tolist() == list(late)
    assert (text_mode is TextMode.STREAMING) == bool(plan.trailing)

    first = sum(FRAMES[:which])
    true = corpus.codes[first : first + count].long()
    assert torch.equal(batch.heard[0, prompt : prompt + count], true)
    assert batch.heard[0, :prompt].eq(NONE).all()
    assert batch.heard[0, prompt + count :].eq(NONE).all()
    expected = [IGNORED] * (prompt - 1) + true[:, 0].tolist() + [tiny.talker.codec_ids.eos]
    assert batch.target[0].tolist() == expected + [IGNORED] * (LENGTH - len(expected))
    assert torch.equal(batch.frames[0], true[batch.places[0] - prompt + 1])


def test_corruption_changes_what_is_heard_and_nothing_else(corpus: Corpus) -> None:
    torch.manual_seed(1)
    pick, mode = torch.ones(64, dtype=torch.long), torch.zeros(64, dtype=torch.long)
    noisy = TalkerSettings(corrupted_frames=0.2, corrupted_codes=0.1, predictor_frames=3)
    batch = assemble(corpus, pick, mode, mode, LENGTH, noisy)
    clean = assemble(corpus, pick, mode, mode, LENGTH, CLEAN)
    spoken = clean.heard >= 0
    share = (batch.heard != clean.heard)[spoken].float().mean()
    assert 0.15 < share < 0.4
    assert torch.equal(batch.heard >= 0, spoken)
    assert int(batch.heard.max()) < 16
    assert torch.equal(batch.target, clean.target)


def test_draws_stay_within_the_bucket_and_languages_without_id_stay_auto(tiny: Tiny, corpus: Corpus) -> None:
    torch.manual_seed(2)
    bucket = Bucket(length=LENGTH, rows=200)
    (members,) = corpus.members((bucket,))
    batch = draw(corpus, members, bucket, CLEAN)
    assert batch.text.shape == (200, LENGTH)
    assert int(batch.text.max()) < tiny.talker.text_vocab
    assert set(batch.control.flatten().tolist()) >= {tiny.talker.codec_ids.think, tiny.talker.codec_ids.nothink}
    finnish = torch.tensor([2] * 200)
    assert not corpus.explicit[finnish].any()


def test_an_empty_bucket_is_refused(corpus: Corpus) -> None:
    with pytest.raises(RecipeError, match="no utterance fits"):
        corpus.members((Bucket(length=8, rows=1),))
