"""A byte-level BPE of the Qwen2 family for the embedded model: `vocab.json` and `merges.txt` trained on the sentences
and descriptions.

Ordinary tokens come first; the control tokens of `config.json` are the last ids of the text vocabulary and appear
only in `tokenizer_config.json`,
as in the published tokenizer. The role words must be single tokens, because a published prompt has exactly three role
rows.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tokenizers import models, pre_tokenizers, trainers

from engine.tokenizer import TextTokenizer, qwen2_pipeline
from recipe.errors import RecipeError
from recipe.voices import VOICES, describe

CONTROL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tts_pad>", "<tts_text_bos>", "<tts_text_eod>")
ROLE_WORDS = ("user", "assistant")
ROLE_REPEATS = 2_000  # often enough that the trainer merges the role words to one token each
VOCABULARY, MERGES, TOKENIZER_CONFIG = "vocab.json", "merges.txt", "tokenizer_config.json"


def train_tokenizer(texts: Iterable[str], *, size: int, directory: Path, seed: int) -> TextTokenizer:
    """Train and write the tokenizer; `size` counts the control tokens too.

    Raises:
        RecipeError: the result lacks a role word, or the texts do not fill the vocabulary.
    """
    directory.mkdir(parents=True, exist_ok=True)
    ordinary = size - len(CONTROL_TOKENS)
    tokenizer = qwen2_pipeline(models.BPE())
    trainer = trainers.BpeTrainer(
        vocab_size=ordinary, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False
    )
    tokenizer.train_from_iterator(_with_roles(texts, seed), trainer)
    content = json.loads(tokenizer.to_str())["model"]
    if len(content["vocab"]) != ordinary:
        raise RecipeError(
            f"the texts give {len(content['vocab'])} tokens, not {ordinary}; give more text or a smaller size"
        )
    missing = [word for word in ROLE_WORDS if word not in content["vocab"]]
    if missing:
        raise RecipeError(f"{', '.join(missing)} did not become a token; raise the vocabulary size")
    _write(directory, content)
    return TextTokenizer.from_directory(directory)


def control_ids(size: int) -> dict[str, int]:
    """Ids of the control tokens in a text vocabulary of `size`."""
    return {token: size - len(CONTROL_TOKENS) + index for index, token in enumerate(CONTROL_TOKENS)}


def _with_roles(texts: Iterable[str], seed: int) -> Iterator[str]:
    yield from texts
    rng = random.Random(seed)
    for _ in range(ROLE_REPEATS):
        yield from (f"{word}\n" for word in ROLE_WORDS)
        yield describe(rng.choice(VOICES), rng)


def _write(directory: Path, content: dict[str, Any]) -> None:
    vocabulary = dict(sorted(content["vocab"].items(), key=lambda item: item[1]))
    size = len(vocabulary) + len(CONTROL_TOKENS)
    (directory / VOCABULARY).write_text(json.dumps(vocabulary, ensure_ascii=False, separators=(",", ":")), "utf-8")
    lines = [" ".join(pair) if isinstance(pair, list) else pair for pair in content["merges"]]
    (directory / MERGES).write_text("\n".join(["#version: 0.2", *lines, ""]), "utf-8")
    added = {
        str(number): {
            "content": token, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False,
            "special": True
        }
        for token, number in control_ids(size).items()
    }  # fmt: skip
    settings = {
        "add_bos_token": False,
        "add_prefix_space": False,
        "added_tokens_decoder": added,
        "additional_special_tokens": list(CONTROL_TOKENS[1:]),
        "bos_token": None,
        "clean_up_tokenization_spaces": False,
        "eos_token": "<|im_end|>",
        "errors": "replace",
        "model_max_length": 4_096,
        "pad_token": "<|endoftext|>",
        "split_special_tokens": False,
        "tokenizer_class": "Qwen2Tokenizer",
        "unk_token": None,
    }
    (directory / TOKENIZER_CONFIG).write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", "utf-8")
