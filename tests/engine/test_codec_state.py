"""Buffers by row: selected, read, written, reset and moved without touching the others."""

from __future__ import annotations

import pytest
import torch

from engine.codec_state import CodecState, StateLayout

CPU = torch.device("cpu")


@pytest.fixture
def state() -> CodecState:
    layout = StateLayout()
    assert (layout.reserve(2, 3), layout.reserve(4)) == (0, 1)
    return CodecState(layout, rows=3, device=CPU)


def fill(state: CodecState) -> None:
    state.select(None)
    state.store(0, torch.arange(3.0)[:, None, None].expand(3, 2, 3) + 1)
    state.store(1, torch.arange(3.0)[:, None].expand(3, 4) + 10)
    state.advance(5)


def test_a_selection_reads_and_writes_only_its_rows_in_its_order(state: CodecState) -> None:
    fill(state)
    state.select(torch.tensor([2, 0]))
    assert state.load(1)[:, 0].tolist() == [12.0, 10.0]
    state.store(1, torch.tensor([[7.0], [8.0]]).expand(2, 4))
    state.advance(2)
    assert state.frames().tolist() == [7, 7]
    state.select(None)
    assert state.load(1)[:, 0].tolist() == [8.0, 11.0, 7.0]
    assert state.frames().tolist() == [7, 5, 7]


def test_reset_puts_one_row_back_to_the_beginning(state: CodecState) -> None:
    fill(state)
    state.reset(1)
    assert state.load(0)[:, 0, 0].tolist() == [1.0, 0.0, 3.0]
    assert state.frames().tolist() == [5, 0, 5]


def test_move_copies_one_row_over_another(state: CodecState) -> None:
    fill(state)
    state.select(torch.tensor([2]))
    state.advance(1)
    state.move(2, 0)
    state.select(None)
    assert state.load(0)[:, 0, 0].tolist() == [3.0, 2.0, 3.0]
    assert state.frames().tolist() == [6, 5, 6]


def test_a_row_counts_its_buffers_and_its_frame_number(state: CodecState) -> None:
    assert state.bytes_per_row == 4 * (2 * 3 + 4) + 8
