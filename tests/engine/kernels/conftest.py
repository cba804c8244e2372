"""Kernels run in Triton's interpreter, so that their arithmetic is tested without an accelerator."""

from __future__ import annotations

import os
from typing import Any

import pytest

os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel module is imported
pytest.importorskip("triton", reason="Triton is not installed")

from triton.runtime import interpreter  # only where Triton is there


def _accept_one_element_arrays() -> None:
    """The interpreter turns one-element arrays into integers, which NumPy refuses from version 2.4 on."""
    inner = interpreter._patch_lang_tensor

    def patch(tensor: Any, scope: Any) -> None:
        inner(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    interpreter._patch_lang_tensor = patch


_accept_one_element_arrays()
