"""Building blocks that the talker, the predictor and the codec's transformer share.

Norms, rotary angles and softmax are computed in FP32 whatever the weights' type. Parameter names are the published
ones.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import TransformerConfig
from engine.kv import KVStore

Rotation = tuple[Tensor, Tensor]  # cosine and sine, each [B or 1, 1, T, D], FP32


class Rotary:
    """Rotary position angles (half-split rotation), tabulated once and read by position.

    All three rows of the published M-RoPE positions are equal in speech synthesis, so the plain rotation is exact.
    """

    def __init__(self, config: TransformerConfig, *, length: int, device: torch.device) -> None:
        exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float32, device=device) / config.head_dim
        angles = torch.outer(
            torch.arange(length, dtype=torch.float32, device=device), 1.0 / config.rope_theta**exponents
        )
        angles = torch.cat((angles, angles), dim=-1)  # [S, D]
        self._cos, self._sin = angles.cos(), angles.sin()
        low, high = self._sin.chunk(2, dim=-1)
        self._signed_sin = torch.cat((-low, high), dim=-1)

    @property
    def tables(self) -> Rotation:
        """Cosine and sine of every position, each [S, D]."""
        return self._cos, self._sin

    def signed(self, positions: slice | Tensor) -> Rotation:
        """Cosine, and sine with its first half negated, each [T, D]: x * cos + roll(x, D / 2) * sin is the rotation."""
        return self._cos[positions], self._signed_sin[positions]

    @property
    def device(self) -> torch.device:
        return self._cos.device

    def first(self, length: int) -> Rotation:
        """Angles of positions 0..length-1."""
        return self._cos[None, None, :length], self._sin[None, None, :length]

    def span(self, start: int, stop: int) -> Rotation:
        """Angles of positions start..stop-1, the same for every row."""
        return self._cos[None, None, start:stop], self._sin[None, None, start:stop]

    def at(self, positions: Tensor) -> Rotation:
        """Angles at integer positions [B, T]."""
        return self._cos[positions][:, None], self._sin[positions][:, None]


def rotate(x: Tensor, rotation: Rotation) -> Tensor:
    """Apply rotary angles to x [B, H, T, D]; computed in FP32, returned in x's type."""
    cos, sin = rotation
    wide = x.float()
    low, high = wide.chunk(2, dim=-1)
    return (wide * cos + torch.cat((-high, low), dim=-1) * sin).to(x.dtype)


class RMSNorm(nn.Module):
    """Root-mean-square norm over the last dimension, in FP32."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x.float(), (x.shape[-1],), self.weight.float(), self.eps).to(x.dtype)


class Attention(nn.Module):
    """Grouped-query attention; `qk_norm` adds the RMSNorm over head_dim that talker and predictor have."""

    def __init__(self, config: TransformerConfig, *, qk_norm: bool) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = config.heads, config.kv_heads, config.head_dim
        self.q_proj = nn.Linear(config.hidden, config.heads * config.head_dim, bias=False)
        self.k_proj = nn.Linear(config.hidden, config.kv_heads * config.head_dim, bias=False)
        self.v_proj = nn.Linear(config.hidden, config.kv_heads * config.head_dim, bias=False)
        self.o_proj = nn.Linear(config.heads * config.head_dim, config.hidden, bias=False)
        self.q_norm: nn.Module = RMSNorm(config.head_dim, config.eps) if qk_norm else nn.Identity()
        self.k_norm: nn.Module = RMSNorm(config.head_dim, config.eps) if qk_norm else nn.Identity()

    def forward(self, x: Tensor, layer: int, rotation: Rotation, store: KVStore) -> Tensor:
        batch, length, _ = x.shape
        queries = self.q_norm(self.q_proj(x).view(batch, length, self.heads, self.head_dim)).transpose(1, 2)
        keys = self.k_norm(self.k_proj(x).view(batch, length, self.kv_heads, self.head_dim)).transpose(1, 2)
        values = self.v_proj(x).view(batch, length, self.kv_heads, self.head_dim).transpose(1, 2)  # [B, H_kv, T, D]
        attended = store.extend(layer, rotate(keys, rotation), values)
        mixed = F.scaled_dot_product_attention(
            rotate(queries, rotation),
            attended.keys,
            attended.values,
            attn_mask=attended.mask,
            is_causal=attended.causal,
            enable_gqa=self.heads != self.kv_heads,
        )  # [B, H, T, D]
        projected: Tensor = self.o_proj(mixed.transpose(1, 2).reshape(batch, length, self.heads * self.head_dim))
        return projected


class SwiGLU(nn.Module):
    """Gated feed-forward layer."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden, config.intermediate, bias=False)
        self.up_proj = nn.Linear(config.hidden, config.intermediate, bias=False)
        self.down_proj = nn.Linear(config.intermediate, config.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        projected: Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return projected


class DecoderLayer(nn.Module):
    """Pre-norm attention and feed-forward with residuals."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.self_attn = Attention(config, qk_norm=True)
        self.mlp = SwiGLU(config)
        self.input_layernorm = RMSNorm(config.hidden, config.eps)
        self.post_attention_layernorm = RMSNorm(config.hidden, config.eps)

    def forward(self, x: Tensor, layer: int, rotation: Rotation, store: KVStore) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), layer, rotation, store)
        fed: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return fed
