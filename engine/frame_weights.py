"""The weights of one frame as the decode step wants them: joined matrices, precomputed tables, the published modules as
views of the same memory.

Query, key and value projections become one matrix, gate and up projections another, the 15 predictor embeddings one
tensor. The modules keep their published names and read the same storage, so nothing is held twice. New are only the
tables that hold each codec embedding after `small_to_mtp_projection`, so that a drawn code becomes the predictor's next
input by a look-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from engine.config import TransformerConfig
from engine.layers import DecoderLayer, RMSNorm
from engine.talker import Talker


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """A linear layer: weight [N, K], bias [N] or None; and, where it is quantised, `packed` [N, K] INT8 with `scale`
    [N] FP32.
    """

    weight: Tensor
    bias: Tensor | None = None
    packed: Tensor | None = None
    scale: Tensor | None = None


@dataclass(frozen=True, kw_only=True)
class LayerWeights:
    """One decoder layer. `qkv` [(H + 2 H_kv) D, C]; `gate_up` [2 I, C], gate first; `qk_norm` [H + H_kv, D] a gain a
    head.
    """

    input_norm: Tensor
    qkv: Matrix
    qk_norm: Tensor
    out: Matrix
    post_norm: Tensor
    gate_up: Matrix
    down: Matrix


@dataclass(frozen=True, kw_only=True)
class StackWeights:
    """A decoder stack with its final norm."""

    config: TransformerConfig
    layers: tuple[LayerWeights, ...]
    norm: Tensor

    @property
    def first_gain(self) -> Tensor:
        """Gain of the norm that reads the stack's input."""
        return self.layers[0].input_norm

    def gain_after(self, layer: int) -> Tensor:
        """Gain of the norm that reads the output of `layer`."""
        return self.layers[layer + 1].input_norm if layer + 1 < len(self.layers) else self.norm


@dataclass(frozen=True, kw_only=True)
class FrameWeights:
    """Everything a frame reads.

    `tables[i]` [V, C_predictor] is codebook i's embedding as the predictor's input (i = 0..14); `rest` [15, V, C] the
    talker-width embeddings of codebooks 1..15; `projection` is None where predictor and talker have the same width.
    """

    talker: StackWeights
    codec_embedding: Tensor
    codec_head: Matrix
    predictor: StackWeights
    projection: Matrix | None
    tables: tuple[Tensor, ...]
    rest: Tensor
    heads: tuple[Matrix, ...]


@torch.inference_mode()
def frame_weights(talker: Talker) -> FrameWeights:
    """Join the talker's weights for decoding; its modules become views of the joined matrices."""
    predictor = talker.code_predictor
    rest = _join(_weights(predictor.model.codec_embedding)).view(
        talker.config.code_groups - 1, -1, talker.config.transformer.hidden
    )
    inputs: list[Tensor] = [talker.model.codec_embedding.weight, *rest[:-1]]
    project = predictor.small_to_mtp_projection
    linear = project if isinstance(project, nn.Linear) else None
    return FrameWeights(
        talker=_stack(talker.config.transformer, talker.model.layers, talker.model.norm.weight),
        codec_embedding=talker.model.codec_embedding.weight,
        codec_head=Matrix(weight=talker.codec_head.weight),
        predictor=_stack(talker.config.predictor.transformer, predictor.model.layers, predictor.model.norm.weight),
        projection=None if linear is None else Matrix(weight=linear.weight, bias=linear.bias),
        tables=tuple(project(table) for table in inputs),
        rest=rest,
        heads=tuple(Matrix(weight=weight) for weight in _weights(predictor.lm_head)),
    )


def _weights(modules: nn.ModuleList) -> list[Tensor]:
    """The `weight` of every module."""
    found = [module.weight for module in modules]
    return [weight for weight in found if isinstance(weight, Tensor)]


def _stack(config: TransformerConfig, layers: nn.ModuleList, norm: Tensor) -> StackWeights:
    joined = []
    for layer in layers:
        assert isinstance(layer, DecoderLayer)
        joined.append(_layer(config, layer))
    return StackWeights(config=config, layers=tuple(joined), norm=norm)


def _layer(config: TransformerConfig, layer: DecoderLayer) -> LayerWeights:
    attention, mlp = layer.self_attn, layer.mlp
    q_norm, k_norm = attention.q_norm, attention.k_norm
    assert isinstance(q_norm, RMSNorm)
    assert isinstance(k_norm, RMSNorm)
    gains = [q_norm.weight.expand(config.heads, -1), k_norm.weight.expand(config.kv_heads, -1)]
    return LayerWeights(
        input_norm=layer.input_layernorm.weight,
        qkv=Matrix(weight=_join([attention.q_proj.weight, attention.k_proj.weight, attention.v_proj.weight])),
        qk_norm=torch.cat(gains),
        out=Matrix(weight=attention.o_proj.weight),
        post_norm=layer.post_attention_layernorm.weight,
        gate_up=Matrix(weight=_join([mlp.gate_proj.weight, mlp.up_proj.weight])),
        down=Matrix(weight=mlp.down_proj.weight),
    )


def _join(parts: Sequence[Tensor]) -> Tensor:
    """One tensor of all rows; the parts become views of it. Parts that already are such views are not copied again."""
    first = parts[0]
    rows = sum(part.shape[0] for part in parts)
    size = first.element_size() * first[0].numel()
    expected = first.data_ptr()
    for part in parts:
        if part.data_ptr() != expected:
            break
        expected += part.shape[0] * size
    else:
        if first.untyped_storage().nbytes() >= first.storage_offset() * first.element_size() + rows * size:
            return first.as_strided((rows, *first.shape[1:]), first.stride())
    joined = torch.cat([part.detach() for part in parts])
    start = 0
    for part in parts:
        part.data = joined[start : start + part.shape[0]]
        start += part.shape[0]
    return joined
