"""The stateful layers of the codec decoder: `state=None` for a full pass, a `CodecState` to continue a stream."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.codec_state import CodecState, StateLayout
from engine.config import CodecConfig
from engine.kv import Attended
from engine.layers import Attention, RMSNorm, Rotary, Rotation, SwiGLU

SNAKE_EPS = 1e-9


class CausalConv1d(nn.Module):
    """Convolution over the past only; remembers the last (kernel - 1) * dilation inputs [C, left]."""

    def __init__(
        self, in_dim: int, out_dim: int, kernel: int, *, dilation: int = 1, groups: int = 1, layout: StateLayout
    ) -> None:
        super().__init__()
        self.conv = nn.Conv1d(in_dim, out_dim, kernel, dilation=dilation, groups=groups)
        self.left = (kernel - 1) * dilation
        self.slot = layout.reserve(in_dim, self.left) if self.left else None

    def forward(self, x: Tensor, state: CodecState | None) -> Tensor:
        if self.slot is None:
            pointwise: Tensor = self.conv(x)
            return pointwise
        if state is None:
            x = F.pad(x, (self.left, 0))
        else:
            x = torch.cat((state.load(self.slot), x), dim=-1)
            state.store(self.slot, x[..., -self.left :])
        convolved: Tensor = self.conv(x)
        return convolved


class CausalTransposedConv1d(nn.Module):
    """Upsampling by `stride`; the last kernel - stride outputs overlap what follows and are kept without bias."""

    def __init__(self, in_dim: int, out_dim: int, kernel: int, stride: int, layout: StateLayout) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose1d(in_dim, out_dim, kernel, stride=stride)
        self.stride, self.tail = stride, kernel - stride
        self.slot = layout.reserve(out_dim, self.tail) if self.tail else None

    def forward(self, x: Tensor, state: CodecState | None) -> Tensor:
        if state is None or self.slot is None:
            whole: Tensor = self.conv(x)
            return whole[..., : x.shape[-1] * self.stride]
        length = x.shape[-1] * self.stride
        spread = F.conv_transpose1d(x, self.conv.weight, None, stride=self.stride)  # [B, C, length + tail]
        spread[..., : self.tail] += state.load(self.slot)
        state.store(self.slot, spread[..., length:])
        bias = self.conv.bias
        return spread[..., :length] if bias is None else spread[..., :length] + bias[:, None]


SnakeKernel = Callable[[Tensor, Tensor, Tensor], Tensor]  # (x [B, C, T], frequency [C], magnitude [C]) -> [B, C, T]


class SnakeBeta(nn.Module):
    """x + sin(x e^alpha)^2 / e^beta, a periodic activation with learnt frequency and magnitude."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.zeros(dim))
        self.beta = nn.Parameter(torch.zeros(dim))
        self._fused: tuple[SnakeKernel, Tensor, Tensor] | None = None

    def fuse(self, kernel: SnakeKernel) -> None:
        """Use `kernel` from now on; the parameters must not change any more."""
        self._fused = kernel, self.alpha.exp(), self.beta.exp() + SNAKE_EPS

    def forward(self, x: Tensor, state: CodecState | None = None) -> Tensor:
        if self._fused is not None:
            kernel, frequency, magnitude = self._fused
            return kernel(x, frequency, magnitude)
        frequency, magnitude = self.alpha.exp()[:, None], (self.beta.exp() + SNAKE_EPS)[:, None]
        periodic: Tensor = torch.sin(x * frequency).square() / magnitude
        return x + periodic


class ConvNeXtBlock(nn.Module):
    """Depthwise causal convolution, then a pointwise MLP with layer scale."""

    def __init__(self, dim: int, layout: StateLayout) -> None:
        super().__init__()
        self.dwconv = CausalConv1d(dim, dim, 7, groups=dim, layout=layout)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.pwconv1 = nn.Linear(dim, 4 * dim)
        self.pwconv2 = nn.Linear(4 * dim, dim)
        self.gamma = nn.Parameter(torch.full((dim,), 1e-6))

    def forward(self, x: Tensor, state: CodecState | None) -> Tensor:
        inner = self.norm(self.dwconv(x, state).transpose(1, 2))  # [B, T, C]
        scaled: Tensor = self.gamma * self.pwconv2(F.gelu(self.pwconv1(inner)))
        return x + scaled.transpose(1, 2)


class ResidualUnit(nn.Module):
    """Two snake-activated convolutions around a residual."""

    def __init__(self, dim: int, dilation: int, layout: StateLayout) -> None:
        super().__init__()
        self.act1, self.act2 = SnakeBeta(dim), SnakeBeta(dim)
        self.conv1 = CausalConv1d(dim, dim, 7, dilation=dilation, layout=layout)
        self.conv2 = CausalConv1d(dim, dim, 1, layout=layout)

    def forward(self, x: Tensor, state: CodecState | None) -> Tensor:
        inner: Tensor = self.conv2(self.act2(self.conv1(self.act1(x), state)), state)
        return x + inner


class LayerScale(nn.Module):
    """A learnt factor a channel on a residual branch."""

    def __init__(self, dim: int, initial: float) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((dim,), initial))

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * x


class WindowStore:
    """Sliding-window attention memory: the last window - 1 keys and values [H, W-1, D] of each layer."""

    def __init__(self, slots: list[tuple[int, int]], window: int, length: int, state: CodecState | None) -> None:
        self._slots, self._keep, self._state = slots, window - 1, state
        self._mask: Tensor | None = None
        self._window, self._length = window, length

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> Attended:
        if self._state is not None:
            key_slot, value_slot = self._slots[layer]
            keys = self._remember(key_slot, keys)
            values = self._remember(value_slot, values)
        if self._mask is None:
            self._mask = self._window_mask(keys.device)
        return Attended(keys=keys, values=values, mask=self._mask)

    def _remember(self, slot: int, new: Tensor) -> Tensor:
        assert self._state is not None
        whole = torch.cat((self._state.load(slot), new), dim=2)  # [B, H, W-1+T, D]
        self._state.store(slot, whole[:, :, -self._keep :])
        return whole

    def _window_mask(self, device: torch.device) -> Tensor:
        """[B or 1, 1, T, S]: a query sees itself and the window - 1 frames before it, none before the beginning."""
        steps = torch.arange(self._length, device=device)
        if self._state is None:
            distance = steps[:, None] - steps[None, :]
            return ((distance >= 0) & (distance < self._window))[None, None]
        start = self._state.frames()[:, None]  # [B, 1]
        queries = start + steps  # [B, T]
        keys = start - self._keep + torch.arange(self._keep + self._length, device=device)  # [B, S]
        distance = queries[:, :, None] - keys[:, None, :]
        return ((distance >= 0) & (distance < self._window) & (keys >= 0)[:, None, :])[:, None]


class WindowedLayer(nn.Module):
    """Pre-norm transformer layer with layer scale on both branches."""

    def __init__(self, config: CodecConfig) -> None:
        super().__init__()
        shape = config.transformer
        self.self_attn = Attention(shape, qk_norm=False)
        self.mlp = SwiGLU(shape)
        self.input_layernorm = RMSNorm(shape.hidden, shape.eps)
        self.post_attention_layernorm = RMSNorm(shape.hidden, shape.eps)
        self.self_attn_layer_scale = LayerScale(shape.hidden, config.layer_scale)
        self.mlp_layer_scale = LayerScale(shape.hidden, config.layer_scale)

    def forward(self, x: Tensor, layer: int, rotation: Rotation, store: WindowStore) -> Tensor:
        x = x + self.self_attn_layer_scale(self.self_attn(self.input_layernorm(x), layer, rotation, store))
        fed: Tensor = x + self.mlp_layer_scale(self.mlp(self.post_attention_layernorm(x)))
        return fed


class WindowedTransformer(nn.Module):
    """The transformer over latent frames, with projections in and out."""

    def __init__(self, config: CodecConfig, layout: StateLayout) -> None:
        super().__init__()
        self._shape, self._window = config.transformer, config.sliding_window
        memory = (config.transformer.kv_heads, config.sliding_window - 1, config.transformer.head_dim)
        self._slots = [(layout.reserve(*memory), layout.reserve(*memory)) for _ in range(config.transformer.layers)]
        self.layers = nn.ModuleList(WindowedLayer(config) for _ in range(config.transformer.layers))
        self.norm = RMSNorm(config.transformer.hidden, config.transformer.eps)
        self.input_proj = nn.Linear(config.latent, config.transformer.hidden)
        self.output_proj = nn.Linear(config.transformer.hidden, config.latent)
        self._rotary: Rotary | None = None

    def forward(self, x: Tensor, state: CodecState | None) -> Tensor:
        """[B, latent, T] -> [B, latent, T]."""
        length = x.shape[2]
        rotary = self._tables(x.device)
        if state is None:
            rotation = rotary.first(length)
        else:
            rotation = rotary.at(state.frames()[:, None] + torch.arange(length, device=x.device))
        store = WindowStore(self._slots, self._window, length, state)
        hidden = self.input_proj(x.transpose(1, 2))
        for index, layer in enumerate(self.layers):
            hidden = layer(hidden, index, rotation, store)
        projected: Tensor = self.output_proj(self.norm(hidden))
        return projected.transpose(1, 2)

    def _tables(self, device: torch.device) -> Rotary:
        if self._rotary is None or self._rotary.device != device:
            self._rotary = Rotary(self._shape, length=self._shape.max_positions, device=device)
        return self._rotary
