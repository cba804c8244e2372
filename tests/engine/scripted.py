"""A talker whose logits are known: weights set so that every position has the same normed state, whatever was said.

Attention and feed-forward outputs are zero, every input row is the vector of ones, so each head reads its first
weight column as logits. Only weights change: whichever code runs the networks must show the script's behaviour.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from engine.checkpoint import LoadedModel

UNLIKELY = -20.0


def scripted(
    model: LoadedModel, code0: Sequence[float], others: Sequence[Sequence[float]] | None = None
) -> LoadedModel:
    """`model` with fixed logits [V] for codebook 0 and [15][V] for the other codebooks (flat where not given)."""
    talker = copy.deepcopy(model.talker)
    predictor = talker.code_predictor
    with torch.no_grad():
        for stack in (talker.model, predictor.model):
            _pass_through(stack.layers)
            stack.norm.weight.fill_(1.0)
        for embedding in (talker.model.codec_embedding, *predictor.model.codec_embedding):
            embedding.weight.zero_()
        _ones(talker.text_projection.linear_fc2)
        _ones(predictor.small_to_mtp_projection)
        _read_first_column(talker.codec_head, code0)
        for index, head in enumerate(predictor.lm_head):
            _read_first_column(head, others[index] if others else [0.0] * predictor.config.vocab)
    return replace(model, talker=talker)


def vocabulary(model: LoadedModel, likely: Mapping[int, float]) -> list[float]:
    """Codebook-0 logits: the likely ids as given, all others `UNLIKELY`."""
    logits = [UNLIKELY] * model.talker.config.vocab
    for code, value in likely.items():
        logits[code] = value
    return logits


def _pass_through(layers: nn.ModuleList) -> None:
    for layer in layers:
        layer.self_attn.o_proj.weight.zero_()  # type: ignore[operator, union-attr]
        layer.mlp.down_proj.weight.zero_()  # type: ignore[operator, union-attr]


def _ones(linear: nn.Module) -> None:
    linear.weight.zero_()  # type: ignore[operator]
    linear.bias.fill_(1.0)  # type: ignore[operator]


def _read_first_column(head: nn.Module, logits: Sequence[float]) -> None:
    weight = head.weight
    assert isinstance(weight, Tensor)
    weight.zero_()
    weight[:, 0] = torch.tensor(logits)
