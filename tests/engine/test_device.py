"""Device names become devices that exist here, or refusals that say what to use."""

from __future__ import annotations

import pytest
import torch

from engine.device import resolve_device, resolve_precision, weight_dtype
from engine.errors import DeviceError, UsageError
from engine.settings import Precision

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


@pytest.mark.parametrize("name", ["toaster", "cuda:first", "meta", ""])
def test_what_is_no_device_is_a_usage_error(name: str) -> None:
    with pytest.raises(UsageError, match="use auto, cpu, cuda or cuda:N"):
        resolve_device(name)


def test_an_absent_accelerator_is_a_device_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(DeviceError, match="cuda:3"):
        resolve_device("cuda:3")
    assert resolve_device("cuda") == GPU


def test_auto_takes_the_first_accelerator_and_else_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert resolve_device("auto") == GPU
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert resolve_device("auto") == CPU


def test_a_numbered_processor_is_the_processor() -> None:
    """Tensors made on `cpu:0` report `cpu`; the engine compares devices."""
    assert resolve_device("cpu:0") == resolve_device("cpu") == torch.zeros(1).device


def test_precision_follows_the_device_only_where_left_open() -> None:
    assert resolve_precision(Precision.AUTO, GPU) is Precision.BF16
    assert resolve_precision(Precision.AUTO, CPU) is Precision.FP32
    assert resolve_precision(Precision.BF16, CPU) is Precision.BF16
    assert weight_dtype(Precision.BF16, torch.device("cpu")) is torch.bfloat16
    assert weight_dtype(Precision.FP32, torch.device("cpu")) is torch.float32
