"""What belongs to a row moves with it, starts afresh and counts its memory."""

from __future__ import annotations

import pytest
import torch

from engine.checkpoint import LoadedModel
from engine.contract import Sampling
from engine.randomness import uniforms
from engine.rows import RowLimits, Rows

CPU = torch.device("cpu")


@pytest.fixture
def rows(quick_model: LoadedModel) -> Rows:
    limits = RowLimits(rows=3, positions=16, frames=5, trailing=4)
    talker, codec = quick_model.talker.config, quick_model.codec.config
    return Rows(talker, codec, limits, device=CPU, dtype=torch.float32)


def trailing(rows: Rows, count: int) -> torch.Tensor:
    return torch.full((count, rows.hidden.shape[1]), 3.0)


def test_an_admitted_row_starts_afresh_with_its_own_uniforms(rows: Rows) -> None:
    rows.seen[1] = True
    rows.frame[1] = 4
    rows.admit(1, seed=6, sampling=Sampling(repetition_penalty=1.3), prompt=7, trailing=trailing(rows, 2))
    assert not rows.seen[1].any()
    assert (int(rows.frame[1]), int(rows.position[1]), int(rows.trailing_length[1])) == (0, 7, 2)
    assert float(rows.penalty[1]) == pytest.approx(1.3)
    expected = torch.from_numpy(uniforms(6, frames=5, code_groups=rows.groups))
    assert torch.equal(rows.uniform[1, :5], expected)
    assert not rows.uniform[0].any()


def test_the_span_is_the_longest_of_the_rows_that_step(rows: Rows) -> None:
    for row, prompt in enumerate((4, 9, 2)):
        rows.admit(row, seed=row, sampling=Sampling(), prompt=prompt, trailing=trailing(rows, 0))
    assert [rows.span(count) for count in (1, 2, 3)] == [5, 10, 10]
    rows.note_step([True, False, True])
    assert [rows.span(count) for count in (1, 2, 3)] == [6, 10, 10]
    rows.move(2, 1)
    assert rows.span(2) == 6


def test_everything_of_a_row_moves(rows: Rows) -> None:
    for row in range(3):
        rows.admit(
            row, seed=row, sampling=Sampling(repetition_penalty=1.0 + row / 10), prompt=4, trailing=trailing(rows, row)
        )
    rows.hidden[2] = 5.0
    rows.codes[2] = 7
    rows.seen[2, 3] = True
    rows.code0[2] = 9
    rows.move(2, 0)
    for name in ("position", "frame", "code0", "hidden", "seen", "penalty", "uniform", "codes", "trailing_length"):
        values = getattr(rows, name)
        assert torch.equal(values[0], values[2]), name
    assert torch.equal(rows.trailing[0, :2], rows.trailing[2, :2])
    assert float(rows.penalty[1]) == pytest.approx(1.1)


def test_too_much_trailing_text_is_an_error_not_a_truncation(rows: Rows) -> None:
    with pytest.raises(RuntimeError):
        rows.admit(0, seed=0, sampling=Sampling(), prompt=4, trailing=trailing(rows, 5))
