"""Page-locked host memory, where there is a device that can copy from it on its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def pinned(values: Sequence[Any]) -> Tensor:
    """A host tensor of these values that a device copies without the host's help; freed memory is reused only after
    the copy.
    """
    tensor = torch.tensor(values)
    return tensor.pin_memory() if torch.cuda.is_available() else tensor


def pinned_empty(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """An unwritten host tensor that a device can copy into."""
    return torch.empty(tuple(shape), dtype=dtype, pin_memory=torch.cuda.is_available())
