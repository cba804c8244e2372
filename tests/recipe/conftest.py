"""A tiny model's configuration and tokenizer, made by the recipe's own code."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.config import CodecConfig, TalkerConfig
from engine.tokenizer import TextTokenizer
from recipe.model_config import write_configs
from recipe.sentence import Sentence
from recipe.settings import ModelShape
from recipe.tokenizer import train_tokenizer
from recipe.voices import random_voice

SHAPE = ModelShape(
    text_vocabulary=400, text_width=16, width=32, intermediate=32, layers=1, predictor_width=32,
    predictor_intermediate=32,
    predictor_layers=1, codebook_size=16, codebook_dim=16, latent=16, decoder_dim=16, encoder_width=4,
)  # fmt: skip
TEXTS = {"en": "The lamp is on.", "de": "Das Licht ist an, und es regnet.", "fi": "Valo on."}


@dataclass(frozen=True, kw_only=True)
class Tiny:
    """A model directory without weights."""

    directory: Path
    talker: TalkerConfig
    codec: CodecConfig
    tokenizer: TextTokenizer
    sentences: list[Sentence]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    directory = tmp_path_factory.mktemp("tiny") / "model"
    rng = random.Random(1)
    words = [f"{rng.choice('bdfgklmnprst')}{rng.choice('aeiou')}{rng.choice('lmnrst')}" for _ in range(600)]
    texts = [*TEXTS.values(), " ".join(words)]
    tokenizer = train_tokenizer(texts, size=SHAPE.text_vocabulary, directory=directory, seed=1)
    talker, codec = write_configs(directory, SHAPE)
    items = [Sentence(language=code, text=text, spoken=text, voice=random_voice(rng)) for code, text in TEXTS.items()]
    return Tiny(directory=directory, talker=talker, codec=codec, tokenizer=tokenizer, sentences=items)
