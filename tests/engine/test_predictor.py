"""Codebooks drawn one by one see what a whole frame at once sees; each goes through its own head."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.checkpoint import LoadedModel
from engine.kv import KVCache, LockstepStore
from engine.layers import Rotary

CPU = torch.device("cpu")


def test_drawing_step_by_step_sees_the_teacher_forced_logits(tiny_model: LoadedModel) -> None:
    talker, predictor = tiny_model.talker, tiny_model.talker.code_predictor
    groups = talker.config.code_groups
    generator = torch.Generator().manual_seed(2)
    hidden = torch.randn(3, talker.config.transformer.hidden, generator=generator)
    codes = torch.randint(0, 64, (3, groups), generator=generator)
    rotary = Rotary(predictor.config.transformer, length=groups + 1, device=CPU)
    cache = KVCache(predictor.config.transformer, rows=4, positions=groups + 1, device=CPU, dtype=torch.float32)
    asked: list[int] = []
    logits: list[Tensor] = []

    def choose(codebook: int, found: Tensor) -> Tensor:
        asked.append(codebook)
        logits.append(found)
        return codes[:, codebook]

    with torch.inference_mode():
        embedded = talker.embed_codec(codes[:, 0])
        chosen = predictor.generate(
            hidden, embedded, rotary=rotary, store=LockstepStore(cache, rows=3), choose=choose
        )  # fmt: skip
        inputs = [hidden, embedded, *(predictor.embed(book, codes[:, book]) for book in range(1, groups - 1))]
        expected = predictor.logits(predictor(torch.stack(inputs, dim=1), rotary))
    assert asked == list(range(1, groups))
    assert torch.equal(chosen, codes[:, 1:])
    torch.testing.assert_close(torch.stack(logits, dim=1), expected, rtol=1e-4, atol=1e-4)
