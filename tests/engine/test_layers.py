"""The shared building blocks against their formulas in doubles."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from engine.config import TransformerConfig
from engine.kv import NoCache
from engine.layers import Attention, RMSNorm, Rotary, SwiGLU, rotate

CPU = torch.device("cpu")
SHAPE = TransformerConfig(
    hidden=24, intermediate=40, layers=1, heads=4, kv_heads=2, head_dim=8, eps=1e-6, rope_theta=1e4, max_positions=64
)  # fmt: skip


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def turned(x: Tensor, position: int) -> Tensor:
    """One head vector [D] rotated pair by pair: element i with element i + D/2, by position / theta^(2i/D)."""
    half = x.shape[-1] // 2
    result = x.double().clone()
    for i in range(half):
        angle = torch.tensor(position / SHAPE.rope_theta ** (2 * i / x.shape[-1]), dtype=torch.float64)
        low, high = x[i].double(), x[i + half].double()
        result[i] = low * angle.cos() - high * angle.sin()
        result[i + half] = high * angle.cos() + low * angle.sin()
    return result


def test_rotation_turns_pairs_by_the_position() -> None:
    x = normal(1, 1, 5, 8)
    found = rotate(x, Rotary(SHAPE, length=64, device=CPU).span(30, 35))
    for step in range(5):
        torch.testing.assert_close(found[0, 0, step].double(), turned(x[0, 0, step], 30 + step), rtol=0, atol=1e-5)


def test_the_three_ways_to_ask_for_angles_agree() -> None:
    rotary = Rotary(SHAPE, length=64, device=CPU)
    first, span, at = rotary.first(9), rotary.span(0, 9), rotary.at(torch.arange(9)[None])
    for cos_or_sin in range(2):
        assert torch.equal(first[cos_or_sin], span[cos_or_sin])
        assert torch.equal(first[cos_or_sin], at[cos_or_sin])


def test_rotation_keeps_the_type_but_computes_in_fp32() -> None:
    x = normal(1, 1, 1, 8).bfloat16()
    rotary = Rotary(SHAPE, length=64, device=CPU)
    found = rotate(x, rotary.span(63, 64))
    assert found.dtype is torch.bfloat16
    assert torch.equal(found, rotate(x.float(), rotary.span(63, 64)).bfloat16())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_norm_is_the_formula_in_fp32_whatever_the_type(dtype: torch.dtype) -> None:
    norm = RMSNorm(24, eps=1e-2)
    norm.weight.data = normal(24, seed=1)
    norm.to(dtype)
    x = (normal(3, 24, seed=2) * 30).to(dtype)
    wide = x.double()
    expected = wide / (wide.square().mean(dim=-1, keepdim=True) + 1e-2).sqrt() * norm.weight.double()
    found = norm(x)
    assert found.dtype is dtype
    tolerance = 1e-5 if dtype is torch.float32 else 2.0**-8  # half a unit in the last place of BF16, relative
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=1e-6)


@pytest.mark.parametrize("qk_norm", [True, False])
def test_attention_is_causal_grouped_and_scaled(qk_norm: bool) -> None:
    torch.manual_seed(0)
    attention = Attention(SHAPE, qk_norm=qk_norm)
    x, length = normal(2, 6, 24, seed=3), 6
    with torch.inference_mode():
        found = attention(x, 0, Rotary(SHAPE, length=64, device=CPU).first(length), NoCache())
        for row in range(2):
            for step in range(length):
                expected = _attend(attention, x[row], step)
                torch.testing.assert_close(found[row, step].double(), expected, rtol=1e-4, atol=1e-5)


def _attend(attention: Attention, x: Tensor, step: int) -> Tensor:
    """What position `step` of one sequence [T, C] attends to, head by head in loops."""
    mixed = []
    for head in range(SHAPE.heads):
        group = head // (SHAPE.heads // SHAPE.kv_heads)
        query = turned(_head(attention.q_norm, attention.q_proj.weight, head, x[step]), step)
        keys = torch.stack(
            [turned(_head(attention.k_norm, attention.k_proj.weight, group, x[s]), s) for s in range(step + 1)]
        )
        values = torch.stack(
            [attention.v_proj.weight[group * 8 : group * 8 + 8] @ x[s] for s in range(step + 1)]
        ).double()
        weights = torch.softmax(keys @ query / 8**0.5, dim=0)
        mixed.append(weights @ values)
    return attention.o_proj.weight.double() @ torch.cat(mixed)


def _head(norm: torch.nn.Module, weight: Tensor, head: int, x: Tensor) -> Tensor:
    normed: Tensor = norm(weight[head * 8 : head * 8 + 8] @ x)
    return normed


def test_the_gated_layer_is_its_formula() -> None:
    torch.manual_seed(1)
    layer, x = SwiGLU(SHAPE), normal(3, 24)
    with torch.inference_mode():
        gate = x @ layer.gate_proj.weight.T
        expected = (gate * torch.sigmoid(gate) * (x @ layer.up_proj.weight.T)) @ layer.down_proj.weight.T
        torch.testing.assert_close(layer(x), expected, rtol=1e-4, atol=1e-6)
