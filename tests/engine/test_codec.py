"""The codec decoder: any partition of the codes gives the samples of one full pass, for every row by itself."""

from __future__ import annotations

import copy
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.checkpoint import LoadedModel
from engine.codec import MIN_CLUSTER_USAGE, Codebook, CodecDecoder
from engine.contract import SAMPLES_PER_FRAME

CPU = torch.device("cpu")
FRAMES = 27  # more than three windows of 8 frames
AUDIBLE = 2e-3  # a hundred times more than rounding
FLOAT_ROUNDING = 2e-5  # of full scale: sums in another order


@pytest.fixture(scope="module")
def codec(quick_model: LoadedModel) -> CodecDecoder:
    return quick_model.codec


def random_codes(rows: int, frames: int = FRAMES, seed: int = 0) -> Tensor:
    return torch.randint(0, 64, (rows, 4, frames), generator=torch.Generator().manual_seed(seed))


CODES = random_codes(3)


@pytest.fixture(scope="module")
def whole(codec: CodecDecoder) -> Tensor:
    """Full passes of three rows [3, 1920 T], each alone."""
    with torch.inference_mode():
        return torch.cat([codec(CODES[row : row + 1]) for row in range(3)])


def cuts(total: int) -> st.SearchStrategy[list[int]]:
    borders = st.sets(st.integers(1, total - 1)).map(lambda at: [0, *sorted(at), total])
    return borders.map(lambda at: [stop - start for start, stop in pairwise(at)])


@settings(deadline=None, max_examples=8)
@given(sizes=cuts(FRAMES))
def test_any_partition_gives_the_full_pass(codec: CodecDecoder, whole: Tensor, sizes: list[int]) -> None:
    with torch.inference_mode():
        state = codec.new_state(1, CPU)
        pieces = [codec(piece, state) for piece in torch.split(CODES[:1], sizes, dim=-1)]
    assert [piece.shape[1] for piece in pieces] == [SAMPLES_PER_FRAME * size for size in sizes]
    assert (torch.cat(pieces, dim=1) - whole[:1]).abs().max() < FLOAT_ROUNDING


@settings(deadline=None, max_examples=6)
@given(calls=st.lists(st.tuples(st.permutations(range(3)), st.integers(1, 3), st.sampled_from([1, 2, 4])), max_size=10))
def test_rows_at_different_phases_are_each_their_own_full_pass(
    codec: CodecDecoder, whole: Tensor, calls: list[tuple[list[int], int, int]]
) -> None:
    state, at = codec.new_state(3, CPU), [0, 0, 0]
    with torch.inference_mode():
        for order, count, size in calls:
            rows = [row for row in order[:count] if at[row] + size <= FRAMES]
            if not rows:
                continue
            state.select(torch.tensor(rows))
            found = codec(torch.stack([CODES[row, :, at[row] : at[row] + size] for row in rows]), state)
            for index, row in enumerate(rows):
                span = slice(at[row] * SAMPLES_PER_FRAME, (at[row] + size) * SAMPLES_PER_FRAME)
                assert (found[index] - whole[row, span]).abs().max() < FLOAT_ROUNDING
                at[row] += size


def test_a_row_that_is_reset_has_no_memory(codec: CodecDecoder) -> None:
    with torch.inference_mode():
        fresh = codec(CODES[:1, :, :5], codec.new_state(1, CPU))
        state = codec.new_state(2, CPU)
        state.select(torch.tensor([1]))
        codec(CODES[1:2], state)
        state.reset(1)
        state.select(torch.tensor([1]))
        assert (codec(CODES[:1, :, :5], state) - fresh).abs().max() < FLOAT_ROUNDING


def test_a_moved_row_goes_on(codec: CodecDecoder, whole: Tensor) -> None:
    with torch.inference_mode():
        state = codec.new_state(2, CPU)
        codec(CODES[:2, :, :11], state)
        state.move(1, 0)
        state.select(torch.tensor([0]))
        rest = codec(CODES[1:2, :, 11:], state)
    assert (rest - whole[1:2, 11 * SAMPLES_PER_FRAME :]).abs().max() < FLOAT_ROUNDING


def test_the_future_never_changes_the_past(codec: CodecDecoder, whole: Tensor) -> None:
    changed = CODES[:1].clone()
    changed[..., 15:] = random_codes(1, FRAMES - 15, seed=9)
    with torch.inference_mode():
        found = codec(changed)
    assert (found - whole[:1])[:, : 15 * SAMPLES_PER_FRAME].abs().max() < FLOAT_ROUNDING
    assert (found - whole[:1])[:, 15 * SAMPLES_PER_FRAME :].abs().max() > AUDIBLE


def test_each_codebook_is_heard(codec: CodecDecoder, whole: Tensor) -> None:
    for book in range(4):
        changed = CODES[:1].clone()
        changed[0, book] = (changed[0, book] + 1) % 64
        with torch.inference_mode():
            assert (codec(changed) - whole[:1]).abs().max() > AUDIBLE


def test_a_frame_beyond_the_receptive_field_is_forgotten(codec: CodecDecoder, whole: Tensor) -> None:
    """Two layers of window 8 and the convolutions reach less than 27 frames back."""
    layers, window = codec.config.transformer.layers, codec.config.sliding_window
    reach = layers * (window - 1) + 2 + 6  # pre_conv 2 frames; after the transformer less than 6
    changed = CODES[:1].clone()
    changed[..., : FRAMES - 1 - reach] = random_codes(1, FRAMES - 1 - reach, seed=8)
    with torch.inference_mode():
        found = codec(changed)
    assert (found - whole[:1])[:, -SAMPLES_PER_FRAME:].abs().max() < FLOAT_ROUNDING
    assert (found - whole[:1])[:, :SAMPLES_PER_FRAME].abs().max() > AUDIBLE


def test_samples_are_finite_and_within_full_scale(codec: CodecDecoder, whole: Tensor) -> None:
    assert whole.isfinite().all()
    assert whole.abs().max() <= 1.0
    assert whole.shape == (3, FRAMES * SAMPLES_PER_FRAME)
    louder = copy.deepcopy(codec)
    with torch.no_grad():
        louder.decoder[-1].conv.weight.mul_(1_000)  # type: ignore[operator, union-attr]
        assert louder(CODES[:1]).abs().max() == 1.0


def test_vectors_are_sums_over_usage_with_a_floor() -> None:
    book = Codebook(3, 2)
    book.embedding_sum.data = torch.tensor([[2.0, 4.0], [1.0, 1.0], [0.0, 1e-5]])
    book.cluster_usage.data = torch.tensor([2.0, 4.0, 0.0])
    expected = [[1.0, 2.0], [0.25, 0.25], [0.0, 1e-5 / MIN_CLUSTER_USAGE]]
    torch.testing.assert_close(book.vectors(), torch.tensor(expected))
