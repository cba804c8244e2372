"""How kernels are launched one behind the other without draining the machine.

With programmatic dependent launch a kernel may start while its predecessor ends: it announces its own successor at once, asks the memory for the
weights it will need (they depend on nobody) and waits before it touches anything a predecessor wrote. Every kernel waits for the whole of its
predecessor, so a kernel's inputs are complete however far back they were written. Without the feature the same code runs one kernel at a time.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

LINE_BYTES = 128


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


@triton.jit
def prefetch(pointers):
    """Ask for the cache lines of these pointers in the second-level cache."""
    tl.inline_asm_elementwise(
        "prefetch.global.L2 [$1]; mov.u32 $0, 0;", "=r,l", [pointers], dtype=tl.int32, is_pure=False, pack=1
    )
