"""The frame step and the codec step: the rules of every draw, and rows that neither touch nor see each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
import torch

from engine.checkpoint import LoadedModel
from engine.config import RESERVED_CODEC_IDS
from engine.contract import SAMPLES_PER_FRAME, Sampling, StageSampling
from engine.layers import Rotary
from engine.prompt import PromptPlan, prompt_rows, trailing_rows
from engine.prompt_mode import TextMode
from engine.randomness import uniforms
from engine.rows import RowLimits
from engine.runner import Runner
from tests.engine import slow_sampler as slow
from tests.engine.scripted import scripted, vocabulary
from tests.engine.speech import GREEDY

CPU = torch.device("cpu")
DEFAULT = Sampling()
ROUNDING = 1e-6  # a uniform this close to a slice border may fall on either side in FP32
OPEN = StageSampling(temperature=1.0, top_k=0)
A, B, C = 3, 7, 11  # ordinary codebook-0 ids


@dataclass(frozen=True, kw_only=True)
class Utterance:
    """What distinguishes one request from another on a row."""

    text: str
    seed: int
    sampling: Sampling = DEFAULT
    mode: TextMode = TextMode.FULL


HELLO = Utterance(text="Hello there.", seed=1)
LONG = Utterance(text="A rather longer sentence than the others, to be at another position.", seed=2)
COLD = Utterance(text="Once.", seed=3, sampling=GREEDY)


def new_runner(
    model: LoadedModel, *, rows: int = 3, frames: int = 24, positions: int = 160, trailing: int = 0
) -> Runner:
    return Runner(model, RowLimits(rows=rows, positions=positions, frames=frames, trailing=trailing))


def plan(model: LoadedModel, utterance: Utterance) -> PromptPlan:
    return model.prompts.plan(text=utterance.text, instruction="Calm.", mode=utterance.mode)


def admit(runner: Runner, model: LoadedModel, row: int, utterance: Utterance) -> None:
    runner.prefill(row, plan(model, utterance), seed=utterance.seed, sampling=utterance.sampling)


def alone(model: LoadedModel, utterance: Utterance, frames: int) -> list[list[int]]:
    """The codes [frames][16] of an utterance that nobody is beside."""
    runner = new_runner(model, rows=1, trailing=0 if utterance.mode is TextMode.FULL else 160)
    admit(runner, model, 0, utterance)
    for _ in range(frames):
        runner.step([True])
    return codes(runner, 0, frames)


def codes(runner: Runner, row: int, frames: int) -> list[list[int]]:
    found: list[list[int]] = runner.codes(row, frames).tolist()
    return found


def samples(packets: Sequence[bytes]) -> npt.NDArray[np.int16]:
    return np.frombuffer(b"".join(packets), dtype="<i2")


def says(model: LoadedModel, logits: Sequence[float], sampling: Sampling, *, frames: int, seed: int = 1) -> list[int]:
    """Codebook-0 draws, prefill's first, of a talker with these logits; ends with the first end of speech."""
    runner = new_runner(scripted(model, logits), rows=1, frames=frames)
    admit(runner, model, 0, Utterance(text="x", seed=seed, sampling=sampling))
    for frame in range(frames):
        if runner.step([True]) == [runner.eos]:
            return [frame_codes[0] for frame_codes in codes(runner, 0, frame + 1)] + [runner.eos]
    return [frame_codes[0] for frame_codes in codes(runner, 0, frames)]


# Rules of the draw.


@pytest.mark.parametrize("stage", [StageSampling(strategy="greedy"), OPEN, StageSampling(top_k=1)])
def test_end_of_speech_is_impossible_for_the_first_two_draws_and_only_those(
    quick_model: LoadedModel, stage: StageSampling
) -> None:
    eos = quick_model.talker.config.codec_ids.eos
    drawn = says(quick_model, vocabulary(quick_model, {eos: 60.0, A: 10.0}), Sampling(talker=stage), frames=6)
    assert drawn == [A, A, eos]


def test_control_ids_are_never_drawn_however_likely(quick_model: LoadedModel) -> None:
    config = quick_model.talker.config
    reserved = range(config.vocab - RESERVED_CODEC_IDS, config.vocab)
    logits = vocabulary(quick_model, dict.fromkeys(reserved, 60.0) | {A: 1.0, B: 1.0, config.codec_ids.eos: -60.0})
    assert set(says(quick_model, logits, Sampling(talker=OPEN), frames=24)) == {A, B}


def test_end_of_speech_passes_through_top_k_like_every_id(quick_model: LoadedModel) -> None:
    eos = quick_model.talker.config.codec_ids.eos
    logits = vocabulary(quick_model, {A: 1.0, B: 1.0, eos: 0.99})
    excluded = Sampling(talker=StageSampling(temperature=2.0, top_k=2), repetition_penalty=1.0)
    assert set(says(quick_model, logits, excluded, frames=24)) == {A, B}
    allowed = Sampling(talker=StageSampling(temperature=2.0, top_k=3), repetition_penalty=1.0)
    assert says(quick_model, logits, allowed, frames=24)[-1] == eos


def test_end_of_speech_passes_through_top_p_like_every_id(quick_model: LoadedModel) -> None:
    eos = quick_model.talker.config.codec_ids.eos
    logits = vocabulary(quick_model, {A: 3.0, B: 2.9, eos: 1.0})
    sampling = Sampling(talker=StageSampling(temperature=1.0, top_k=0, top_p=0.6), repetition_penalty=1.0)
    assert set(says(quick_model, logits, sampling, frames=24)) == {A, B}


@pytest.mark.parametrize(
    ("likely", "expected"),
    [
        ({A: 2.0, B: 1.9}, [A, B, A, A, A]),  # 2 -> 1.33 and 1.9 -> 1.27, then neither falls again
        ({A: -1.0, B: -1.2}, [A, B, A, A, A]),  # -1 -> -1.5 and -1.2 -> -1.8
        ({A: 2.0, B: 1.0}, [A, A, A, A, A]),  # counted by occurrence, the second A would have lost to B
    ],
)
def test_the_penalty_acts_once_for_each_distinct_id(
    quick_model: LoadedModel, likely: dict[int, float], expected: list[int]
) -> None:
    sampling = Sampling(talker=StageSampling(strategy="greedy"), repetition_penalty=1.5)
    assert says(quick_model, vocabulary(quick_model, likely), sampling, frames=5) == expected


@pytest.mark.parametrize(
    ("talker", "predictor", "penalty"),
    [
        (StageSampling(), StageSampling(), 1.05),
        (OPEN, StageSampling(temperature=0.4, top_k=7, top_p=0.9), 1.0),
        (StageSampling(temperature=2.0, top_k=0, top_p=0.95), OPEN, 1.9),
        (StageSampling(temperature=0.7, top_k=9), StageSampling(strategy="greedy"), 0.6),
    ],
)
def test_both_stages_draw_what_the_slow_sampler_draws_from_the_documented_uniforms(
    quick_model: LoadedModel, talker: StageSampling, predictor: StageSampling, penalty: float
) -> None:
    """Every code of 24 frames: order of the filters, which uniform decides, history, minimum length."""
    seed, frames, groups = 9, 24, quick_model.talker.config.code_groups
    generator = torch.Generator().manual_seed(11)
    ordinary = quick_model.talker.config.vocab - RESERVED_CODEC_IDS
    eos = quick_model.talker.config.codec_ids.eos
    code0 = vocabulary(quick_model, dict(enumerate((3 * torch.randn(ordinary, generator=generator)).tolist())))
    others = (2 * torch.randn(groups - 1, quick_model.talker.config.predictor.vocab, generator=generator)).tolist()
    runner = new_runner(scripted(quick_model, code0, others), rows=1, frames=frames)
    sampling = Sampling(talker=talker, predictor=predictor, repetition_penalty=penalty)
    admit(runner, quick_model, 0, Utterance(text="x", seed=seed, sampling=sampling))
    for _ in range(frames):
        runner.step([True])
    numbers, seen = uniforms(seed, frames=frames, code_groups=groups), set[int]()
    for frame, row in enumerate(codes(runner, 0, frames)):
        logits = slow.penalised(code0, seen, penalty)
        allowed = [
            value if code < ordinary or (code == eos and frame > 1) else slow.NEVER for code, value in enumerate(logits)
        ]
        expected = [_slow_draw(allowed, talker, float(numbers[frame, 0]))]
        expected += [_slow_draw(others[i], predictor, float(numbers[frame, i + 1])) for i in range(groups - 1)]
        assert row == expected, f"frame {frame}"
        seen.add(row[0])


def _slow_draw(logits: Sequence[float], stage: StageSampling, uniform: float) -> int:
    if stage.greedy:
        return max(range(len(logits)), key=lambda code: logits[code])
    chances = slow.probabilities(logits, stage)
    assert slow.margin(chances, uniform) > ROUNDING, "the fixed seed has a uniform on a border: choose another seed"
    return slow.pick(chances, uniform)


# The networks in steps are the networks in one pass.


@pytest.mark.parametrize("mode", list(TextMode))
def test_steps_give_the_greedy_codes_of_one_whole_pass(tiny_model: LoadedModel, mode: TextMode) -> None:
    frames, utterance = 12, Utterance(text="Hello you.", seed=0, sampling=GREEDY, mode=mode)
    found = alone(tiny_model, utterance, frames)
    talker, laid_out = tiny_model.talker, plan(tiny_model, utterance)
    spoken = torch.tensor(found)
    with torch.inference_mode():
        pad = talker.embed_text(torch.tensor([talker.config.text_ids.tts_pad]))
        text = torch.cat((trailing_rows(talker, laid_out, CPU), pad.expand(frames, -1)))[:frames]
        inputs = torch.cat((prompt_rows(talker, laid_out, CPU), talker.embed_frames(spoken) + text))
        hidden = talker(inputs[None], Rotary(talker.config.transformer, length=160, device=CPU))[
            0, laid_out.length - 1 :
        ]
        logits = talker.codec_head(hidden)
        known = torch.cat((hidden[:frames, None], _embedded(tiny_model, spoken)), dim=1)  # [F, 16, C]
        rotary = Rotary(talker.config.predictor.transformer, length=17, device=CPU)
        rest = talker.code_predictor.logits(talker.code_predictor(known, rotary)).argmax(dim=-1)
    assert spoken[:, 1:].tolist() == rest.tolist()
    seen: set[int] = set()
    for frame in range(frames):
        allowed = slow.penalised(logits[frame].tolist(), seen, GREEDY.repetition_penalty)
        ordinary = talker.config.vocab - RESERVED_CODEC_IDS
        options = [*range(ordinary), talker.config.codec_ids.eos] if frame > 1 else range(ordinary)
        assert found[frame][0] == max(options, key=lambda code: allowed[code])
        seen.add(found[frame][0])


def _embedded(model: LoadedModel, spoken: torch.Tensor) -> torch.Tensor:
    """Embeddings [F, 15, C] of codebooks 0..14, the predictor's inputs after the hidden state."""
    talker = model.talker
    rest = [talker.code_predictor.embed(book, spoken[:, book]) for book in range(1, talker.config.code_groups - 1)]
    return torch.stack([talker.embed_codec(spoken[:, 0]), *rest], dim=1)


# Rows neither touch nor see each other.


def test_identical_requests_in_one_batch_give_identical_rows(tiny_model: LoadedModel) -> None:
    runner = new_runner(tiny_model)
    for row in range(3):
        admit(runner, tiny_model, row, HELLO)
    for _ in range(8):
        runner.step([True] * 3)
    first = codes(runner, 0, 8)
    assert codes(runner, 1, 8) == codes(runner, 2, 8) == first
    pcm = runner.decode([0, 1, 2], [0, 0, 0], 4)
    assert pcm[0] == pcm[1] == pcm[2]


def test_alone_and_co_batched_give_the_same_codes_in_fp32(tiny_model: LoadedModel) -> None:
    runner = new_runner(tiny_model)
    together = (LONG, HELLO, COLD)
    for row, utterance in enumerate(together):
        admit(runner, tiny_model, row, utterance)
    for _ in range(12):
        runner.step([True] * 3)
    for row, utterance in enumerate(together):
        assert codes(runner, row, 12) == alone(tiny_model, utterance, 12)


def test_a_late_newcomer_changes_nobody_and_is_itself(quick_model: LoadedModel) -> None:
    runner = new_runner(quick_model)
    admit(runner, quick_model, 0, LONG)
    for _ in range(5):
        runner.step([True])
    admit(runner, quick_model, 1, HELLO)
    for _ in range(6):
        runner.step([True, True])
    assert codes(runner, 0, 11) == alone(quick_model, LONG, 11)
    assert codes(runner, 1, 6) == alone(quick_model, HELLO, 6)


@pytest.mark.parametrize("mode", list(TextMode))
def test_a_parked_row_stays_where_it_is_and_resumes_as_if_nothing_had_been(
    quick_model: LoadedModel, mode: TextMode
) -> None:
    utterance = Utterance(text="Hello there.", seed=1, mode=mode)
    runner = new_runner(quick_model, trailing=0 if mode is TextMode.FULL else 160)
    admit(runner, quick_model, 0, utterance)
    admit(runner, quick_model, 1, Utterance(text="Beside it.", seed=5, mode=mode))
    pattern = [True, False, True, False, False, True, True, False, True, True]
    for advances in pattern:
        runner.step([advances, True])
    assert codes(runner, 0, sum(pattern)) == alone(quick_model, utterance, sum(pattern))
    assert codes(runner, 1, 10) == alone(quick_model, Utterance(text="Beside it.", seed=5, mode=mode), 10)


def test_a_parked_rows_draw_is_the_draw_it_makes_when_it_resumes(quick_model: LoadedModel) -> None:
    runner = new_runner(quick_model)
    admit(runner, quick_model, 0, HELLO)
    admit(runner, quick_model, 1, LONG)
    runner.step([True, True])
    parked = [runner.step([False, True])[0] for _ in range(3)]
    assert parked == [runner.step([True, True])[0]] * 3


@pytest.mark.parametrize("slack", [1, 7])
def test_a_complete_row_may_wait_for_its_reader_at_the_very_end_of_its_buffers(
    quick_model: LoadedModel, slack: int
) -> None:
    """Frames, cache positions and uniforms are used up to the last one while another row goes on."""
    frames = 6
    positions = plan(quick_model, HELLO).length + frames + slack
    runner = new_runner(quick_model, rows=2, frames=frames, positions=positions)
    admit(runner, quick_model, 0, HELLO)
    for _ in range(frames):
        runner.step([True])
    admit(runner, quick_model, 1, Utterance(text="Late.", seed=8))
    for _ in range(frames):
        runner.step([False, True])
    assert codes(runner, 0, frames) == alone(quick_model, HELLO, frames)
    assert codes(runner, 1, frames) == alone(quick_model, Utterance(text="Late.", seed=8), frames)
    assert len(runner.decode([0], [4], 2)[0]) == 2 * 2 * SAMPLES_PER_FRAME


@pytest.mark.parametrize("mode", list(TextMode))
def test_a_request_that_moves_to_another_row_stays_itself(quick_model: LoadedModel, mode: TextMode) -> None:
    trailing = 0 if mode is TextMode.FULL else 160
    mover = Utterance(text="I shall move twice.", seed=4, sampling=Sampling(repetition_penalty=1.4), mode=mode)
    runner = new_runner(quick_model, trailing=trailing)
    for row, utterance in enumerate((Utterance(text="First.", seed=6, mode=mode), COLD_IN[mode], mover)):
        admit(runner, quick_model, row, utterance)
    for _ in range(4):
        runner.step([True] * 3)
    before = runner.decode([2], [0], 4)
    runner.move(2, 0)
    for _ in range(3):
        runner.step([True, True])
    runner.move(0, 1)
    admit(runner, quick_model, 0, Utterance(text="Newcomer.", seed=7, mode=mode))
    for _ in range(5):
        runner.step([True, True])
    expected = alone(quick_model, mover, 12)
    assert codes(runner, 1, 12) == expected
    heard = samples(before + runner.decode([1], [4], 8))
    assert np.abs(heard.astype(int) - whole(quick_model, expected)).max() <= 1
    assert codes(runner, 0, 5) == alone(quick_model, Utterance(text="Newcomer.", seed=7, mode=mode), 5)


COLD_IN = {mode: Utterance(text="Once.", seed=3, sampling=GREEDY, mode=mode) for mode in TextMode}


def test_a_row_used_again_carries_no_residue(quick_model: LoadedModel) -> None:
    """History, cache, text rows, codec state: a second life on the row is bit for bit the first."""
    runner = new_runner(quick_model, rows=1, trailing=160)
    lives: list[tuple[list[list[int]], list[bytes]]] = []
    short = Utterance(text="Hi.", seed=1, mode=TextMode.STREAMING)
    noisy = Utterance(text=LONG.text, seed=2, sampling=Sampling(repetition_penalty=2.0), mode=TextMode.STREAMING)
    for utterance in (short, noisy, short):
        admit(runner, quick_model, 0, utterance)
        for _ in range(10):
            runner.step([True])
        lives.append((codes(runner, 0, 10), runner.decode([0], [0], 10)))
    assert lives[0] == lives[2]
    assert lives[0] != lives[1]


# The codec step.


def whole(model: LoadedModel, spoken: list[list[int]]) -> npt.NDArray[np.int_]:
    """PCM of one full pass over codes [F][16]."""
    with torch.inference_mode():
        wave = model.codec(torch.tensor(spoken).T[None])[0]
    pcm: npt.NDArray[np.int_] = (wave * 32_767).round().to(torch.int64).numpy()
    return pcm


def test_packets_of_rows_at_different_phases_join_to_their_full_passes(quick_model: LoadedModel) -> None:
    runner = new_runner(quick_model, frames=16)
    utterances = (HELLO, LONG, COLD)
    for row, utterance in enumerate(utterances):
        admit(runner, quick_model, row, utterance)
    for _ in range(16):
        runner.step([True] * 3)
    heard: list[list[bytes]] = [[], [], []]
    at = [0, 0, 0]
    for rows, size in [([1], 1), ([0, 2], 1), ([1], 2), ([2, 1], 4), ([0], 2), ([0, 1], 4), ([2], 3), ([0, 2, 1], 4)]:
        for row, packet in zip(rows, runner.decode(rows, [at[row] for row in rows], size), strict=True):
            assert len(packet) == 2 * SAMPLES_PER_FRAME * size
            heard[row].append(packet)
            at[row] += size
    assert at == [11, 15, 12]
    for row in range(3):
        full = whole(quick_model, codes(runner, row, 16))[: at[row] * SAMPLES_PER_FRAME]
        assert np.abs(samples(heard[row]).astype(int) - full).max() <= 1  # one step of 16 bits: rounding of FP32 sums


def test_the_waveform_is_not_silence(quick_model: LoadedModel) -> None:
    """Comparisons of silence with silence would prove nothing."""
    heard = whole(quick_model, alone(quick_model, HELLO, 8))
    assert np.abs(heard).mean() > 300
    assert np.abs(heard).max() < 32_767


def test_a_longer_cache_reserves_more_memory(quick_model: LoadedModel) -> None:
    small, large = (new_runner(quick_model, rows=1, positions=positions) for positions in (64, 128))
    shape = quick_model.talker.config.transformer
    extra = 64 * 2 * shape.layers * shape.kv_heads * shape.head_dim * 4  # keys and values of 64 positions in FP32
    assert large.bytes_per_row - small.bytes_per_row == extra
