"""The official package as an oracle: loads a checkpoint directory into it and records what it computes.

Runs only in the `parity` session, which installs `qwen-tts` 0.1.1 without its dependencies.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from qualification.subjects.official_model import load_package


@dataclass(frozen=True, kw_only=True)
class Utterance:
    """One prompt of a batch."""

    text: str
    instruction: str
    language: str


@dataclass(frozen=True, kw_only=True)
class Generated:
    """What the official model made of a batch: unpadded prefill rows [T, C], trailing rows [N, C], codes [F, 16] each."""

    prefill: list[Tensor]
    trailing: list[Tensor]
    codes: list[Tensor]


class OfficialModel:
    """The official talker, predictor and codec decoder with the weights of a directory, FP32 on the CPU."""

    def __init__(self, directory: Path) -> None:
        package = load_package(directory)
        self.model, self.codec, self.tokenizer = package.model, package.codec, package.tokenizer

    def ids(self, text: str) -> Tensor:
        """Token ids [1, T] with control tokens recognised."""
        encoded: Tensor = self.tokenizer(text, return_tensors="pt")["input_ids"]
        return encoded

    def generate(self, batch: list[Utterance], *, frames: int, full_text: bool) -> Generated:
        """Greedy decoding of a batch, as the package's own `generate` does it."""
        recorded: dict[str, Any] = {}
        inner = self.model.talker.generate

        def record(**arguments: Any) -> Any:
            recorded.update(arguments)
            return inner(**arguments)

        self.model.talker.generate = record
        try:
            codes, _ = self.model.generate(
                input_ids=[
                    self.ids(f"<|im_start|>assistant\n{u.text}<|im_end|>\n<|im_start|>assistant\n") for u in batch
                ],
                instruct_ids=[
                    self.ids(f"<|im_start|>user\n{u.instruction}<|im_end|>\n") if u.instruction else None for u in batch
                ],
                languages=[u.language for u in batch],
                non_streaming_mode=full_text,
                max_new_tokens=frames + 1,
                do_sample=False,
                subtalker_dosample=False,
            )
        finally:
            self.model.talker.generate = inner
        mask = recorded["attention_mask"].bool()
        return Generated(
            prefill=[rows[kept] for rows, kept in zip(recorded["inputs_embeds"], mask, strict=True)],
            trailing=list(recorded["trailing_text_hidden"]),
            codes=codes,
        )

    def decode(self, codes: Tensor) -> Tensor:
        """One full decoder pass: codes [F, 16] -> samples [1920 F]."""
        with torch.no_grad():
            samples: Tensor = self.codec(codes.T[None])[0, 0]
        return samples
