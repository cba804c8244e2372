"""INT8 weights for decoding: symmetric, one scale an output channel, made at load from the verified weights.

The policy is fixed and recorded: the matrices of the talker's and the predictor's layers, where nearly all bytes of a
frame are. Embeddings, heads, norms, projections, the codec and every weight that prefill reads stay as they are, and so
does the checkpoint's identity. On an accelerator batches of up to two rows read the INT8 weight and multiply by the
scale; larger ones read the BF16 weight, which the tensor cores take without conversion and therefore faster. On a CPU
the dequantised values are kept, which gives the same numbers without a slower product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.frame_weights import FrameWeights, LayerWeights, Matrix, StackWeights

LEVELS = 127
KEPT = {
    "talker and predictor embeddings": "look-ups, not products; quantising them breaks the model",
    "codec_head and lm_head": "their rounding moves the drawn codes directly",
    "norms": "vectors",
    "text_projection and small_to_mtp_projection": "read once a prompt or once a frame",
    "prefill": "uses the original weights",
    "codec": "FP32, an error there is heard",
}
PARTS = {
    "qkv": "self_attn.{q,k,v}_proj",
    "out": "self_attn.o_proj",
    "gate_up": "mlp.{gate,up}_proj",
    "down": "mlp.down_proj",
}


@dataclass(frozen=True, kw_only=True)
class QuantisedMatrix:
    """One matrix: published names, shape [N, K], and the relative Frobenius error of its quantised values."""

    name: str
    shape: tuple[int, int]
    relative_error: float


@dataclass(frozen=True, kw_only=True)
class QuantReport:
    """What was quantised with which error, and what was not and why."""

    scheme: str
    quantised: tuple[QuantisedMatrix, ...]
    kept: dict[str, str]

    @property
    def worst_error(self) -> float:
        return max(matrix.relative_error for matrix in self.quantised)


@torch.inference_mode()
def quantise_weights(weights: FrameWeights, *, packed: bool) -> tuple[FrameWeights, QuantReport]:
    """INT8 layers for talker and predictor.

    Args:
        packed: keep INT8 values and scales for kernels that read them; otherwise keep the dequantised values.
    """
    done: list[QuantisedMatrix] = []

    def convert(name: str, matrix: Matrix) -> Matrix:
        quantised = quantise(matrix)
        done.append(_record(name, matrix, quantised))
        return quantised if packed else replace(matrix, weight=dequantise(quantised).to(matrix.weight.dtype))

    talker = _stack(weights.talker, "talker.model", convert)
    predictor = _stack(weights.predictor, "talker.code_predictor.model", convert)
    report = QuantReport(
        scheme="INT8, symmetric, per output channel, weights only", quantised=tuple(done), kept=dict(KEPT)
    )
    return replace(weights, talker=talker, predictor=predictor), report


def quantise(matrix: Matrix) -> Matrix:
    """A matrix [N, K] with its INT8 values and scale [N]; a row of zeros keeps the scale 1."""
    wide = matrix.weight.float()
    peak = wide.abs().amax(dim=1)
    scale = torch.where(peak > 0, peak / LEVELS, torch.ones_like(peak))
    packed = (wide / scale[:, None]).round_().clamp_(-LEVELS, LEVELS).to(torch.int8)
    return replace(matrix, packed=packed, scale=scale)


def dequantise(matrix: Matrix) -> Tensor:
    """The FP32 values [N, K] that an INT8 matrix stands for."""
    assert matrix.packed is not None
    assert matrix.scale is not None
    return matrix.packed.float() * matrix.scale[:, None]


def _record(name: str, matrix: Matrix, quantised: Matrix) -> QuantisedMatrix:
    wide = matrix.weight.float()
    error = (dequantise(quantised) - wide).norm() / wide.norm().clamp(min=torch.finfo(torch.float32).tiny)
    rows, inner = matrix.weight.shape
    return QuantisedMatrix(name=name, shape=(rows, inner), relative_error=float(error))


def _stack(stack: StackWeights, prefix: str, convert: Callable[[str, Matrix], Matrix]) -> StackWeights:
    def layer(index: int, weights: LayerWeights) -> LayerWeights:
        def part(name: str) -> Matrix:
            return convert(f"{prefix}.layers.{index}.{PARTS[name]}", getattr(weights, name))

        return replace(weights, qkv=part("qkv"), out=part("out"), gate_up=part("gate_up"), down=part("down"))

    return replace(stack, layers=tuple(layer(index, weights) for index, weights in enumerate(stack.layers)))
