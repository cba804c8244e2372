"""The talker: prompt rows and frame embeddings in, hidden states and codebook-0 logits out.

Module and parameter names are those of the published checkpoint, so a state dict loads unconverted.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import TalkerConfig
from engine.kv import KVStore, NoCache
from engine.layers import DecoderLayer, RMSNorm, Rotary, Rotation
from engine.predictor import Predictor


class TextProjection(nn.Module):
    """Text width to talker width, two layers with SiLU between."""

    def __init__(self, text_hidden: int, hidden: int) -> None:
        super().__init__()
        self.linear_fc1 = nn.Linear(text_hidden, text_hidden, bias=True)
        self.linear_fc2 = nn.Linear(text_hidden, hidden, bias=True)

    def forward(self, x: Tensor) -> Tensor:
        projected: Tensor = self.linear_fc2(F.silu(self.linear_fc1(x)))
        return projected


class TalkerBackbone(nn.Module):
    """Transformer with the codec and text embeddings."""

    def __init__(self, config: TalkerConfig) -> None:
        super().__init__()
        shape = config.transformer
        self.layers = nn.ModuleList(DecoderLayer(shape) for _ in range(shape.layers))
        self.norm = RMSNorm(shape.hidden, shape.eps)
        self.codec_embedding = nn.Embedding(config.vocab, shape.hidden)
        self.text_embedding = nn.Embedding(config.text_vocab, config.text_hidden)

    def forward(self, x: Tensor, rotation: Rotation, store: KVStore) -> Tensor:
        for index, layer in enumerate(self.layers):
            x = layer(x, index, rotation, store)
        normed: Tensor = self.norm(x)
        return normed


class Talker(nn.Module):
    """`talker` of the checkpoint, with the code predictor inside as published."""

    def __init__(self, config: TalkerConfig) -> None:
        super().__init__()
        self.config = config
        self.model = TalkerBackbone(config)
        self.text_projection = TextProjection(config.text_hidden, config.transformer.hidden)
        self.codec_head = nn.Linear(config.transformer.hidden, config.vocab, bias=False)
        self.code_predictor = Predictor(config.predictor, config.transformer.hidden)

    def forward(self, embeds: Tensor, rotary: Rotary) -> Tensor:
        """A whole sequence from position 0: embeds [B, T, C] -> normed hidden states [B, T, C]."""
        hidden: Tensor = self.model(embeds, rotary.first(embeds.shape[1]), NoCache())
        return hidden

    def embed_text(self, ids: Tensor) -> Tensor:
        """Projected text rows [..., C] of text ids [...]."""
        projected: Tensor = self.text_projection(self.model.text_embedding(ids))
        return projected

    def embed_codec(self, ids: Tensor) -> Tensor:
        """Codec embeddings [..., C] of codebook-0 or control ids [...]."""
        embedded: Tensor = self.model.codec_embedding(ids)
        return embedded

    def embed_frames(self, codes: Tensor) -> Tensor:
        """Sum of the 16 embeddings [..., C] of complete frames [..., 16]."""
        total = self.embed_codec(codes[..., 0])
        for codebook in range(1, self.config.code_groups):
            total = total + self.code_predictor.embed(codebook, codes[..., codebook])
        return total


class SpeechModel(nn.Module):
    """Root of `model.safetensors`: every tensor there begins with `talker.`."""

    def __init__(self, config: TalkerConfig) -> None:
        super().__init__()
        self.talker = Talker(config)
