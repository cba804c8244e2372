"""Which device, which type of weights."""

from __future__ import annotations

import torch

from engine.checkpoint import LoadedModel
from engine.errors import DeviceError, UsageError
from engine.rows import RowLimits
from engine.runner import Runner
from engine.settings import Precision

MIN_CAPABILITY = (8, 0)
GRAPH_BYTES = 1 << 30  # graphs, codec state and working memory
SMALL_MODEL_WIDTH = 1_024
_DTYPES = {Precision.BF16: torch.bfloat16, Precision.FP32: torch.float32}


def resolve_device(name: str) -> torch.device:
    """The torch device that a setting names; `auto` is the first accelerator, else the CPU.

    Raises:
        UsageError: not a device name. DeviceError: no such device here.
    """
    if name == "auto":
        return torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UsageError(f"{name!r} is not a device; use auto, cpu, cuda or cuda:N") from error
    if device.type not in {"cpu", "cuda"}:
        raise UsageError(f"device {name!r} is not supported; use auto, cpu, cuda or cuda:N")
    if device.type == "cuda":
        index = device.index or 0
        if index >= torch.cuda.device_count():
            raise DeviceError(f"{name} is not there: {torch.cuda.device_count()} CUDA devices found; use --device cpu")
        return torch.device("cuda", index)
    return torch.device("cpu")  # without a number: tensors report plain `cpu`


def resolve_precision(precision: Precision, device: torch.device) -> Precision:
    """BF16 on an accelerator and FP32 on a CPU where the setting leaves it open."""
    if precision is not Precision.AUTO:
        return precision
    return Precision.BF16 if device.type == "cuda" else Precision.FP32


def weight_dtype(precision: Precision, device: torch.device) -> torch.dtype:
    """The type that weights are held in; quantised layers come on top of the device's own type."""
    if precision is Precision.INT8:
        precision = resolve_precision(Precision.AUTO, device)
    return _DTYPES[precision]


def make_runner(model: LoadedModel, limits: RowLimits, *, int8: bool) -> Runner:
    """The runner of the model's device: captured graphs over fused kernels on an accelerator, plain torch on a CPU.

    Raises:
        DeviceError: an accelerator that is too old or too small, a missing Triton, a graph that cannot be captured.
    """
    if model.device.type == "cpu":
        return Runner(model, limits, int8=int8)
    capability = torch.cuda.get_device_capability(model.device)
    if capability < MIN_CAPABILITY:
        raise DeviceError(
            f"{torch.cuda.get_device_name(model.device)} has compute capability {capability[0]}.{capability[1]}, the kernels need "
            f"{MIN_CAPABILITY[0]}.{MIN_CAPABILITY[1]}; use --device cpu"
        )
    check_memory(model, limits)
    try:
        from engine.graph_runner import GraphRunner  # Triton is there only where an accelerator is
    except ImportError as error:
        raise DeviceError(f"Triton cannot be imported ({error}); install it, or use --device cpu") from error
    return GraphRunner(model, limits, int8=int8)


def check_memory(model: LoadedModel, limits: RowLimits) -> None:
    """Refuse limits whose caches do not fit beside the weights that are loaded."""
    shape = model.talker.config.transformer
    position = 2 * shape.layers * shape.kv_heads * shape.head_dim * model.dtype.itemsize
    needed = limits.rows * limits.positions * position + GRAPH_BYTES
    free, _ = torch.cuda.mem_get_info(model.device)
    if needed > free:
        raise DeviceError(
            f"{limits.rows} requests of {limits.positions} positions need {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB are free; "
            "lower --max-concurrent-requests or --max-positions"
        )


def cpu_threads(hidden: int) -> int:
    """CPU threads for a talker of width `hidden` where the settings leave it open.

    One for a small model: its operations are shorter than the hand-over between threads, which on a busy machine costs
    many times the work.
    """
    return 1 if hidden < SMALL_MODEL_WIDTH else torch.get_num_threads()
