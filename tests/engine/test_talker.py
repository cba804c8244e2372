"""The talker in steps equals the talker in one pass; a frame's embedding is the sum of its codebooks'."""

from __future__ import annotations

import torch

from engine.checkpoint import LoadedModel
from engine.kv import DecodeStore, KVCache, PrefillStore
from engine.layers import Rotary

CPU = torch.device("cpu")


def test_prefill_and_steps_of_unequal_rows_equal_whole_sequences(tiny_model: LoadedModel) -> None:
    talker = tiny_model.talker
    shape = talker.config.transformer
    rotary = Rotary(shape, length=32, device=CPU)
    cache = KVCache(shape, rows=3, positions=32, device=CPU, dtype=torch.float32)
    embeds = torch.randn(3, 20, shape.hidden, generator=torch.Generator().manual_seed(0))
    lengths = torch.tensor([12, 3, 7])
    with torch.inference_mode():
        whole = [talker(embeds[row : row + 1], rotary)[0] for row in range(3)]
        for row, length in enumerate(lengths.tolist()):
            found = talker.model(embeds[row : row + 1, :length], rotary.first(length), PrefillStore(cache, row))
            torch.testing.assert_close(found[0], whole[row][:length], rtol=1e-4, atol=1e-4)
        for step in range(8):
            position = lengths + step
            inputs = embeds[torch.arange(3), position][:, None]
            store = DecodeStore(cache, position, span=int(position.max()) + 1)
            found = talker.model(inputs, rotary.at(position[:, None]), store)[:, 0]
            expected = torch.stack([whole[row][position[row]] for row in range(3)])
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_a_frames_embedding_is_the_sum_of_its_sixteen(tiny_model: LoadedModel) -> None:
    talker = tiny_model.talker
    codes = torch.randint(0, 64, (2, 16), generator=torch.Generator().manual_seed(1))
    tables = [talker.model.codec_embedding, *talker.code_predictor.model.codec_embedding]
    with torch.inference_mode():
        expected = sum(table.weight[codes[:, book]] for book, table in enumerate(tables))
        torch.testing.assert_close(talker.embed_frames(codes), expected)
