"""The codec's stateful layers against their formulas, whole and in pieces."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from engine.codec_layers import SNAKE_EPS, CausalConv1d, CausalTransposedConv1d, SnakeBeta
from engine.codec_state import CodecState, StateLayout

CPU = torch.device("cpu")
PARTITIONS = ([9], [1] * 9, [1, 2, 4, 2], [5, 1, 3])


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def in_pieces(layer: torch.nn.Module, layout: StateLayout, x: Tensor, sizes: list[int]) -> Tensor:
    state = CodecState(layout, rows=x.shape[0], device=CPU)
    return torch.cat([layer(piece, state) for piece in torch.split(x, sizes, dim=-1)], dim=-1)


@pytest.mark.parametrize(("kernel", "dilation", "groups"), [(3, 1, 1), (7, 9, 1), (7, 1, 4), (1, 1, 1)])
def test_a_causal_convolution_sees_the_past_only(kernel: int, dilation: int, groups: int) -> None:
    torch.manual_seed(0)
    layout = StateLayout()
    layer = CausalConv1d(4, 4, kernel, dilation=dilation, groups=groups, layout=layout)
    x = normal(2, 4, 9)
    with torch.inference_mode():
        whole = layer(x, None)
        weight, bias, width = layer.conv.weight, layer.conv.bias, 4 // groups
        assert bias is not None
        for out in range(4):
            inputs = slice(out // width * width, out // width * width + width)
            for step in range(9):
                expected = bias[out].clone()
                for tap in range(kernel):
                    at = step - (kernel - 1 - tap) * dilation
                    if at >= 0:
                        expected += weight[out, :, tap] @ x[0, inputs, at]
                torch.testing.assert_close(whole[0, out, step], expected, rtol=1e-4, atol=1e-5)
        for sizes in PARTITIONS:
            torch.testing.assert_close(in_pieces(layer, layout, x, sizes), whole, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("kernel", "stride"), [(2, 2), (16, 8), (6, 3), (10, 5), (7, 2)])
def test_a_transposed_convolution_adds_its_overlaps_and_its_bias_once(kernel: int, stride: int) -> None:
    torch.manual_seed(1)
    layout = StateLayout()
    layer = CausalTransposedConv1d(3, 2, kernel, stride, layout)
    x = normal(2, 3, 9, seed=2)
    with torch.inference_mode():
        weight, bias = layer.conv.weight, layer.conv.bias
        assert bias is not None
        expected = torch.zeros(2, 2, 9 * stride + kernel)
        for step in range(9):
            expected[:, :, step * stride : step * stride + kernel] += torch.einsum("bi,iok->bok", x[:, :, step], weight)
        expected = expected[:, :, : 9 * stride] + bias[:, None]
        torch.testing.assert_close(layer(x, None), expected, rtol=1e-4, atol=1e-5)
        for sizes in PARTITIONS:
            torch.testing.assert_close(in_pieces(layer, layout, x, sizes), expected, rtol=1e-4, atol=1e-5)


def test_snake_is_its_formula() -> None:
    layer, x = SnakeBeta(3), normal(2, 3, 5)
    layer.alpha.data, layer.beta.data = normal(3, seed=1), normal(3, seed=2)
    with torch.inference_mode():
        for channel in range(3):
            a, b = layer.alpha[channel].double().exp(), layer.beta[channel].double().exp()
            wide = x[:, channel].double()
            expected = wide + torch.sin(wide * a) ** 2 / (b + SNAKE_EPS)
            torch.testing.assert_close(layer(x)[:, channel].double(), expected, rtol=1e-5, atol=1e-6)
