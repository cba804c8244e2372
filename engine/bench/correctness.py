"""Whether speed cost anything: fused BF16 against FP32, a replay against a call, a row alone against the row in a
batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.bench.timing import captured
from engine.checkpoint import LoadedModel
from engine.contract import Sampling
from engine.frame import FrameProgram
from engine.frame_ops import Residual
from engine.frame_weights import FrameWeights, Matrix, frame_weights
from engine.kernels.ops import FusedOps
from engine.layers import Rotary
from engine.prompt import prompt_rows
from engine.rows import RowLimits, Rows
from engine.runner import Runner
from engine.talker import Talker

TEXT, VOICE = "A sentence that both of them speak.", "A calm voice."


class RecordingOps(FusedOps):
    """Keeps the logits of every head, in the order of the frame: 15 of the predictor, then the talker's."""

    def __init__(self, weights: FrameWeights, rows: int, device: torch.device) -> None:
        super().__init__(weights, rows, device)
        self.recorded: list[Tensor] = []

    def logits(self, x: Residual, matrix: Matrix, eps: float) -> Tensor:
        found = super().logits(x, matrix, eps)
        self.recorded.append(found.clone())
        return found


@torch.inference_mode()
def teacher_forced(model: LoadedModel, *, frames: int) -> dict[str, Any]:
    """Cosine of the fused step's logits to FP32 modules that are given the same codes, at every position.

    The FP32 side runs the published modules over the whole sequence at once, so it shares no code with the frame step.
    """
    plan = model.prompts.plan(text=TEXT, instruction=VOICE)
    runner = Runner(model, RowLimits(rows=1, positions=plan.length + frames + 2, frames=frames + 1))
    ops = RecordingOps(runner.weights, 1, model.device)
    runner.prefill(0, plan, seed=1, sampling=Sampling())
    program = runner.program(ops)
    runner.rows.advance.fill_(True)
    for _ in range(frames):
        program(1, span=runner.rows.limits.positions)
    codes = runner.rows.codes[0, :frames]  # [F, 16]
    groups = codes.shape[1]
    heard = [torch.cat(ops.recorded[first::groups]) for first in range(groups)]  # 15 of [F, V], then the talker's
    reference = deepcopy(model.talker).float()
    prompt = prompt_rows(reference, plan, model.device)
    talker, predictor = _reference_logits(reference, prompt, codes, runner.pad_row.float())
    return {
        "frames": frames,
        "talker_cosine_minimum": float(F.cosine_similarity(heard[-1], talker, dim=-1).min()),
        "predictor_cosine_minimum": float(
            min(F.cosine_similarity(heard[book], predictor[:, book], dim=-1).min() for book in range(groups - 1))
        ),
    }


def _reference_logits(talker: Talker, prompt: Tensor, codes: Tensor, pad_row: Tensor) -> tuple[Tensor, Tensor]:
    """FP32 logits of the talker after each frame [F, V] and of the predictor within each [F, 15, V]."""
    config = talker.config
    embeds = torch.cat((prompt, talker.embed_frames(codes) + pad_row))[None]
    hidden = talker(embeds, Rotary(config.transformer, length=embeds.shape[1], device=embeds.device))[0]
    start = prompt.shape[0]
    before = hidden[start - 1 : -1]  # predicts codebook 0 of each frame
    inputs = [before, talker.embed_codec(codes[:, 0])]
    inputs += [talker.code_predictor.embed(book, codes[:, book]) for book in range(1, codes.shape[1] - 1)]
    rotary = Rotary(config.predictor.transformer, length=codes.shape[1], device=codes.device)
    inner = talker.code_predictor(torch.stack(inputs, dim=1), rotary)
    return talker.codec_head(hidden[start:]), talker.code_predictor.logits(inner)


@torch.inference_mode()
def batch_matrix(model: LoadedModel, sizes: Sequence[int]) -> dict[str, Any]:
    """One frame of the same row alone and among others: equal bits, and the largest difference of any of its logits."""
    weights = frame_weights(model.talker)
    plans = [model.prompts.plan(text=f"{TEXT} {'x' * (row % 40)}", instruction=VOICE) for row in range(max(sizes))]
    limits = RowLimits(rows=max(sizes), positions=max(plan.length for plan in plans) + 4, frames=3)
    runner = Runner(model, limits)
    for row, plan in enumerate(plans):
        runner.prefill(row, plan, seed=row, sampling=Sampling())
    kept = _state(runner.rows)
    alone: list[Tensor] = []
    found = {}
    for size in sizes:
        _restore(runner.rows, kept)
        ops = RecordingOps(weights, size, model.device)
        runner.rows.advance.fill_(True)
        runner.program(ops)(size, span=limits.positions)
        heard = [logits[0] for logits in ops.recorded]
        alone = alone or heard
        worst = max(float((here - there).abs().max()) for here, there in zip(heard, alone, strict=True))
        found[f"B{size}"] = {
            "equal_bits": all(torch.equal(here, there) for here, there in zip(heard, alone, strict=True)),
            "largest_logit_difference": worst,
        }
    return found


@torch.inference_mode()
def replay_equals_call(program: FrameProgram, rows: Rows, count: int) -> bool:
    """Whether a captured frame leaves the same bits as a called one."""

    def call() -> None:
        program(count, span=rows.limits.positions)

    kept = _state(rows)
    graph = captured(call)
    outcomes = []
    for run in (call, graph.replay):
        _restore(rows, kept)
        run()
        outcomes.append(_state(rows))
    return all(torch.equal(called, replayed) for called, replayed in zip(*outcomes, strict=True))


def _state(rows: Rows) -> list[Tensor]:
    return [tensor.clone() for tensor in (*rows._moving, rows.cache.data)]


def _restore(rows: Rows, kept: list[Tensor]) -> None:
    for tensor, value in zip((*rows._moving, rows.cache.data), kept, strict=True):
        tensor.copy_(value)
