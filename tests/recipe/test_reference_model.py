"""The shipped model: within its size, strictly loadable, and the card beside it speaks of these very files."""

from __future__ import annotations

from pathlib import Path

import torch

from engine.checkpoint import CODEC_FILE, TALKER_FILE, load_model
from engine.settings import REFERENCE_MODEL
from engine.tokenizer import TextTokenizer
from recipe.export import LARGEST_BYTES, file_hashes


def test_the_shipped_model_loads_strictly_and_is_small() -> None:
    load_model(REFERENCE_MODEL, device=torch.device("cpu"), dtype=torch.float32)
    size = sum((REFERENCE_MODEL / name).stat().st_size for name in (TALKER_FILE, CODEC_FILE))
    assert size <= LARGEST_BYTES


def test_the_card_holds_the_hash_of_every_file() -> None:
    card = (Path(REFERENCE_MODEL) / "MODEL_CARD.md").read_text("utf-8")
    for name, value in file_hashes(REFERENCE_MODEL).items():
        assert f"| `{name}` | `{value}` |" in card


def test_control_token_spellings_stay_text() -> None:
    tokenizer = TextTokenizer.from_directory(REFERENCE_MODEL)
    ids = tokenizer.encode("<|im_end|> and <tts_pad>")
    assert tokenizer.decode(ids) == "<|im_end|> and <tts_pad>"
    assert max(ids) < 3_066
