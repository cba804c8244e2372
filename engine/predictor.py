"""The code predictor: from the talker's hidden state and codebook 0 to the frame's other 15 codes.

Input 0 is the talker's hidden state, input i (1..15) the embedding of codebook i-1; the output at input i gives
codebook i through head i-1. Nothing is kept from one frame to the next.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from engine.config import PredictorConfig
from engine.kv import KVStore, LockstepStore, NoCache
from engine.layers import DecoderLayer, RMSNorm, Rotary, Rotation

ChooseCode = Callable[[int, Tensor], Tensor]  # (codebook 1..15, logits [B, V] FP32) -> codes [B]


class PredictorBackbone(nn.Module):
    """Transformer and the embeddings of codebooks 1..15, the last of which only feeds the talker."""

    def __init__(self, config: PredictorConfig, talker_hidden: int) -> None:
        super().__init__()
        shape = config.transformer
        self.layers = nn.ModuleList(DecoderLayer(shape) for _ in range(shape.layers))
        self.norm = RMSNorm(shape.hidden, shape.eps)
        self.codec_embedding = nn.ModuleList(
            nn.Embedding(config.vocab, talker_hidden) for _ in range(config.code_groups - 1)
        )

    def forward(self, x: Tensor, rotation: Rotation, store: KVStore) -> Tensor:
        for index, layer in enumerate(self.layers):
            x = layer(x, index, rotation, store)
        normed: Tensor = self.norm(x)
        return normed


class Predictor(nn.Module):
    """`talker.code_predictor` of the checkpoint."""

    def __init__(self, config: PredictorConfig, talker_hidden: int) -> None:
        super().__init__()
        self.config = config
        self.model = PredictorBackbone(config, talker_hidden)
        self.lm_head = nn.ModuleList(
            nn.Linear(config.transformer.hidden, config.vocab, bias=False) for _ in range(config.code_groups - 1)
        )
        self.small_to_mtp_projection: nn.Module = (
            nn.Linear(talker_hidden, config.transformer.hidden, bias=True)
            if config.transformer.hidden != talker_hidden
            else nn.Identity()
        )

    def embed(self, codebook: int, codes: Tensor) -> Tensor:
        """Talker-width embedding [..., C] of codes [...] of `codebook` (1..15)."""
        embedded: Tensor = self.model.codec_embedding[codebook - 1](codes)
        return embedded

    def forward(self, inputs: Tensor, rotary: Rotary) -> Tensor:
        """Whole frames at once (teacher forcing): inputs [B, 16, C_talker] -> hidden [B, 16, C]."""
        hidden: Tensor = self.model(self.small_to_mtp_projection(inputs), rotary.first(inputs.shape[1]), NoCache())
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """Teacher-forced logits [B, 15, V] from hidden [B, 16, C]."""
        return torch.stack([head(hidden[:, index + 1]) for index, head in enumerate(self.lm_head)], dim=1)

    def generate(
        self, hidden: Tensor, embedded: Tensor, *, rotary: Rotary, store: LockstepStore, choose: ChooseCode
    ) -> Tensor:
        """Draw codebooks 1..15 of one frame.

        Args:
            hidden: talker hidden state [B, C_talker]. embedded: codebook 0's embedding [B, C_talker].
            choose: draws one codebook from its logits.

        Returns:
            Codes [B, 15].
        """
        inputs = torch.stack((hidden, embedded), dim=1)  # [B, 2, C]
        codes: list[Tensor] = []
        for codebook in range(1, self.config.code_groups):
            width = inputs.shape[1]
            rotation = rotary.span(store.length, store.length + width)
            output = self.model(self.small_to_mtp_projection(inputs), rotation, store)
            store.advance(width)
            codes.append(choose(codebook, self.lm_head[codebook - 1](output[:, -1]).float()))
            if codebook + 1 < self.config.code_groups:
                inputs = self.embed(codebook, codes[-1])[:, None]
        return torch.stack(codes, dim=1)
