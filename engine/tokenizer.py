"""Byte-level BPE of the Qwen2 family from the checkpoint's `vocab.json` and `merges.txt`.

Only ordinary text goes through here: control tokens are ids from `config.json` that the prompt inserts by itself, so a
spelling such as `<|im_end|>` in a user's text stays ordinary text.
"""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from engine.errors import ModelError

QWEN2_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class TextTokenizer:
    """Text to ids. Byte-level, so every string has an encoding."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    @property
    def largest_id(self) -> int:
        """The largest id that an encoding may hold."""
        return max(self._tokenizer.get_vocab(with_added_tokens=False).values())

    @classmethod
    def from_directory(cls, directory: Path) -> TextTokenizer:
        """Load `vocab.json` and `merges.txt`.

        Raises:
            ModelError: a file is missing or not in the expected form.
        """
        vocab_path, merges_path = directory / "vocab.json", directory / "merges.txt"
        try:
            vocab = json.loads(vocab_path.read_bytes())
            merges = [
                _pair(line)
                for line in merges_path.read_text("utf-8").split("\n")
                if line and not line.startswith("#version")
            ]
            model = models.BPE(vocab=vocab, merges=merges)
        except FileNotFoundError as error:
            raise ModelError(f"{error.filename} is missing; give a complete model directory with --model") from error
        except Exception as error:  # the tokenizers library raises plain Exception for a bad vocabulary
            raise ModelError(f"{vocab_path} and {merges_path.name} do not form a BPE vocabulary: {error}") from error
        if missing := set(pre_tokenizers.ByteLevel.alphabet()) - vocab.keys():
            raise ModelError(f"{vocab_path} has no token for {len(missing)} of the 256 bytes; text would lose them")
        return cls(qwen2_pipeline(model))

    def encode(self, text: str) -> list[int]:
        """Ids of ordinary text; control-token spellings are not recognised."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: list[int]) -> str:
        text: str = self._tokenizer.decode(ids, skip_special_tokens=False)
        return text


def qwen2_pipeline(model: models.BPE) -> Tokenizer:
    """The normalisation and pre-tokenisation of the Qwen2 family around a BPE model."""
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN2_SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _pair(line: str) -> tuple[str, str]:
    left, right = line.split(" ")
    return left, right
