"""Which device, which type of weights."""

from __future__ import annotations

import torch

from engine.errors import DeviceError, UsageError
from engine.settings import Precision

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


def weight_dtype(precision: Precision) -> torch.dtype:
    return _DTYPES[precision]
