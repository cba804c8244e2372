"""The talker's loss: looked-up rows equal the engine's embeddings, and training lowers it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.layers import Rotary
from engine.talker import SpeechModel
from recipe.batches import Corpus, assemble
from recipe.prompts import build_prompts
from recipe.settings import Bucket, TalkerSettings
from recipe.talker_training import Lookup, Trainer, initialise, losses
from tests.recipe.conftest import Tiny

SETTINGS = TalkerSettings(
    buckets=(Bucket(length=90, rows=3),),
    predictor_frames=4,
    corrupted_frames=0.0,
    corrupted_codes=0.0,
    learning_rate=5e-3,
)


@pytest.fixture
def corpus(tiny: Tiny) -> Corpus:
    tables = build_prompts(tiny.sentences, tiny.tokenizer, tiny.talker, descriptions=1, seed=3)
    codes = np.random.default_rng(1).integers(0, 16, (30, 16)).astype(np.uint8)
    return Corpus(tables, codes, np.array([10, 8, 12]), tiny.talker, torch.device("cpu"))


@pytest.fixture
def model(tiny: Tiny) -> SpeechModel:
    torch.manual_seed(0)
    model = SpeechModel(tiny.talker)
    initialise(model)
    return model


def test_looked_up_rows_are_the_engines_embeddings(tiny: Tiny, model: SpeechModel) -> None:
    talker, lookup = model.talker, Lookup(model.talker)
    codes = torch.randint(0, 16, (5, 16))
    assert torch.allclose(lookup.rows(lookup.frame_index(codes)), talker.embed_frames(codes), atol=1e-5)
    text = torch.randint(0, tiny.talker.text_vocab, (5, 1))
    assert torch.allclose(lookup.rows(text + lookup.text), talker.embed_text(text[:, 0]), atol=1e-5)
    assert not lookup.rows(lookup.frame_index(torch.full((1, 16), -1))).any()


def test_fresh_weights_are_about_as_good_as_guessing(tiny: Tiny, model: SpeechModel, corpus: Corpus) -> None:
    zero = torch.zeros(3, dtype=torch.long)
    batch = assemble(corpus, torch.arange(3), zero, zero, 90, SETTINGS)
    loss = losses(model.talker, batch, Rotary(tiny.talker.transformer, length=90, device=torch.device("cpu")))
    assert loss.talker.item() == pytest.approx(np.log(tiny.talker.vocab), rel=0.1)
    assert loss.predictor.item() == pytest.approx(np.log(16), rel=0.1)


def test_steps_learn(tiny: Tiny, corpus: Corpus) -> None:
    torch.manual_seed(0)
    trainer = Trainer(corpus, tiny.talker, SETTINGS)
    trainer.set_rate(5e-3)
    (members,) = corpus.members(SETTINGS.buckets)
    seen = []
    for _ in range(25):
        trainer.step(SETTINGS.buckets[0], members)
        seen.append(trainer.seen.clone())
    assert seen[-1][0] < 0.7 * seen[0][0]
    assert seen[-1][1] < seen[0][1]
