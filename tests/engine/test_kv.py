"""Key/value storage: what is written where, and what a query may see."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.config import TransformerConfig
from engine.kv import DecodeStore, KVCache, LockstepStore, NoCache, PrefillStore

CPU = torch.device("cpu")
SHAPE = TransformerConfig(
    hidden=8, intermediate=8, layers=2, heads=2, kv_heads=2, head_dim=4, eps=1e-6, rope_theta=1e4, max_positions=16
)  # fmt: skip


def new_cache(rows: int = 3, positions: int = 8) -> KVCache:
    return KVCache(SHAPE, rows=rows, positions=positions, device=CPU, dtype=torch.float32)


def block(value: float, rows: int = 1, length: int = 1) -> Tensor:
    return torch.full((rows, SHAPE.kv_heads, length, SHAPE.head_dim), value)


def seen(attended_mask: Tensor | None, row: int) -> list[int]:
    """The positions that a row's single query may attend to."""
    assert attended_mask is not None
    return attended_mask[row, 0, 0].nonzero().ravel().tolist()


def test_each_row_sees_its_own_past_up_to_its_own_position() -> None:
    cache = new_cache()
    for row, length in enumerate((4, 1, 2)):
        PrefillStore(cache, row).extend(0, block(row + 1.0, length=length), block(row + 10.0, length=length))
    positions = torch.tensor([4, 1, 2])
    attended = DecodeStore(cache, positions, span=5).extend(0, block(7.0, rows=3), block(70.0, rows=3))
    assert [seen(attended.mask, row) for row in range(3)] == [[0, 1, 2, 3, 4], [0, 1], [0, 1, 2]]
    for row, length in enumerate((4, 1, 2)):
        assert attended.keys[row, 0, : length + 1, 0].tolist() == [row + 1.0] * length + [7.0]
        assert attended.values[row, 1, : length + 1, 3].tolist() == [row + 10.0] * length + [70.0]


def test_a_prefill_touches_one_row_and_one_layer() -> None:
    cache = new_cache()
    attended = PrefillStore(cache, 1).extend(1, block(5.0, length=3), block(6.0, length=3))
    assert attended.causal
    touched = cache.data.abs().sum(dim=(3, 4, 5)) > 0  # [L, 2, R]
    assert touched.nonzero().tolist() == [[1, 0, 1], [1, 1, 1]]


def test_a_move_copies_what_is_in_use_and_no_more() -> None:
    cache = new_cache()
    for layer in range(2):
        PrefillStore(cache, 2).extend(layer, block(5.0, length=4), block(6.0, length=4))
        PrefillStore(cache, 0).extend(layer, block(1.0, length=8), block(2.0, length=8))
    cache.move(2, 0, 4)
    assert torch.equal(cache.data[:, :, 0, :, :4], cache.data[:, :, 2, :, :4])
    assert cache.data[0, 0, 0, 0, 4:, 0].tolist() == [1.0] * 4
    assert cache.positions == 8


def test_lockstep_rows_share_one_position_that_only_advance_moves() -> None:
    store = LockstepStore(new_cache(positions=4), rows=2)
    first = store.extend(0, block(1.0, rows=2, length=2), block(1.0, rows=2, length=2))
    assert first.causal
    assert first.keys.shape[2] == 2
    store.advance(2)
    second = store.extend(0, block(2.0, rows=2), block(2.0, rows=2))
    assert not second.causal
    assert second.keys[1, 0, :, 0].tolist() == [1.0, 1.0, 2.0]


def test_without_a_cache_only_a_longer_sequence_needs_the_causal_rule() -> None:
    assert NoCache().extend(0, block(1.0, length=2), block(1.0, length=2)).causal
    assert not NoCache().extend(0, block(1.0), block(1.0)).causal
