"""The onset stage: a decoder that leaves full scale is brought back, and its level set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.codec import CodecDecoder
from recipe.codec_training import DECODER_FILE, initialise
from recipe.corpus import read_record, write_codes, write_sentences
from recipe.errors import RecipeError
from recipe.onset import ONSET_FILE, RECORD_FILE, train_onset
from recipe.settings import preset
from tests.recipe.conftest import SHAPE, Tiny


def test_the_decoder_learns_and_its_level_matches(tiny: Tiny, tmp_path: Path) -> None:
    torch.manual_seed(0)
    items = tiny.sentences[:2] * 5
    write_sentences(tmp_path, items)
    write_codes(tmp_path, [np.random.default_rng(1).integers(0, 16, (40, 16)).astype(np.uint8) for _ in items])
    decoder = CodecDecoder(tiny.codec)
    initialise(decoder)
    save_file(decoder.state_dict(), tmp_path / DECODER_FILE)
    settings = preset("smoke", work=tmp_path, device="cpu", processes=1)
    settings = replace(settings, shape=SHAPE, onset=replace(settings.onset, utterances=10, steps=4))
    train_onset(settings, tiny.codec, lambda line: None)
    record = read_record(tmp_path / RECORD_FILE, "onset")
    assert record["steps"] == 4
    after = record["held_out_after"]
    assert isinstance(after, dict)
    assert after["level"] == pytest.approx(1.0, abs=0.01)
    changed = load_file(tmp_path / ONSET_FILE)
    before = decoder.state_dict()
    assert not torch.equal(changed["decoder.6.conv.weight"], before["decoder.6.conv.weight"])
    assert all(torch.equal(changed[name], before[name]) for name in before if name.startswith("quantizer."))


def test_without_a_codec_there_is_nothing_to_refine(tiny: Tiny, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="codec stage"):
        train_onset(preset("smoke", work=tmp_path, device="cpu", processes=1), tiny.codec, lambda line: None)
