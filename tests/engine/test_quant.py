"""INT8 layers: what is quantised, with which error, what is left alone, and that speech still comes out."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.checkpoint import LoadedModel, load_model
from engine.contract import Sampling
from engine.frame_weights import Matrix, frame_weights
from engine.quant import PARTS, dequantise, quantise, quantise_weights
from engine.rows import RowLimits
from engine.runner import Runner
from tests.engine.tiny_checkpoint import write_tiny_checkpoint


@pytest.fixture
def model(tmp_path: Path) -> LoadedModel:
    return load_model(write_tiny_checkpoint(tmp_path), device=torch.device("cpu"), dtype=torch.float32)


def test_values_are_within_half_a_step_of_their_channel() -> None:
    weight = torch.randn(24, 64) * torch.logspace(-3, 3, 24)[:, None]
    quantised = quantise(Matrix(weight=weight))
    assert quantised.packed is not None
    assert quantised.packed.dtype is torch.int8
    assert quantised.scale is not None
    error = (dequantise(quantised) - weight).abs()
    assert (error <= quantised.scale[:, None] * 0.5001).all()
    assert torch.equal(quantised.packed.abs().amax(dim=1), torch.full((24,), 127, dtype=torch.int8))


def test_a_row_of_zeros_stays_zero() -> None:
    assert torch.equal(dequantise(quantise(Matrix(weight=torch.zeros(2, 8)))), torch.zeros(2, 8))


@pytest.mark.parametrize("packed", [True, False])
def test_report_lists_every_layer_matrix_and_nothing_else(model: LoadedModel, packed: bool) -> None:
    weights = frame_weights(model.talker)
    quantised, report = quantise_weights(weights, packed=packed)
    layers = len(weights.talker.layers) + len(weights.predictor.layers)
    assert len(report.quantised) == layers * len(PARTS)
    assert len({matrix.name for matrix in report.quantised}) == len(report.quantised)
    assert 1e-4 < report.worst_error < 2e-2
    assert "codec" in report.kept
    for part in PARTS:
        matrix = getattr(quantised.talker.layers[0], part)
        original = getattr(weights.talker.layers[0], part).weight
        assert (matrix.packed is not None) is packed
        assert torch.equal(matrix.weight, original) is packed
    assert quantised.codec_head is weights.codec_head
    assert quantised.heads is weights.heads
    assert quantised.rest is weights.rest


def test_the_checkpoint_modules_keep_their_weights(model: LoadedModel) -> None:
    before = {name: value.clone() for name, value in model.talker.state_dict().items()}
    quantise_weights(frame_weights(model.talker), packed=False)
    for name, value in model.talker.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_a_quantised_runner_prefills_alike_and_speaks(model: LoadedModel) -> None:
    limits = RowLimits(rows=1, positions=160, frames=8)
    plain, quantised = Runner(model, limits), Runner(model, limits, int8=True)
    plan = model.prompts.plan(text="Hello.", instruction="Calm.")
    for runner in (plain, quantised):
        runner.prefill(0, plan, seed=1, sampling=Sampling())
    assert torch.equal(plain.rows.hidden, quantised.rows.hidden)
    for runner in (plain, quantised):
        runner.step([True])
    assert plain.quantisation is None
    assert quantised.quantisation is not None
    difference = (plain.rows.hidden - quantised.rows.hidden).norm() / plain.rows.hidden.norm()
    assert difference > 0
    assert quantised.codes(0, 1).shape == (1, 16)
