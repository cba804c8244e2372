"""How kernels are launched one behind the other without draining the machine.

With programmatic dependent launch a kernel may start while its predecessor ends: it asks the memory for the first
weights it will need (they depend on nobody), announces its own successor and waits before it touches anything a
predecessor wrote. Every kernel waits for the whole of its predecessor, so a kernel's inputs are complete however far
back they were written. Without the feature the same code runs one kernel at a time.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


@triton.jit
def begin(OVERLAP: tl.constexpr):
    """Let the next kernel start."""
    if OVERLAP:
        gdc_launch_dependents()


@triton.jit
def await_inputs(OVERLAP: tl.constexpr):
    """From here on everything that earlier kernels wrote may be read."""
    if OVERLAP:
        gdc_wait()
