"""How kernels are launched one behind the other without draining the machine.

With programmatic dependent launch a kernel may start while its predecessor ends. Every kernel waits for the whole of
its predecessor before it touches anything that one wrote, so a kernel's inputs are complete however far back they were
written. When a kernel lets its successor in matters for speed alone:

    OVERLAP 0   never: the same code runs one kernel at a time
            1   once its own loads are behind it: a successor let in before takes the multiprocessors of those at work
            2   and kernels of a few programs (attention, draws, sums) at their start: they leave most of the machine free
            3   and a matrix product asks the second-level cache for its weights, which depend on nobody, while it waits
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

AHEAD = 256  # 16-bit weights of one request to the cache, 512 bytes


@triton.jit
def begin_small(OVERLAP: tl.constexpr):
    """Start of a kernel of a few programs: from here on everything that earlier kernels wrote may be read."""
    if OVERLAP > 1:
        gdc_launch_dependents()
    if OVERLAP:
        gdc_wait()


@triton.jit
def prefetch(lines, K, AHEAD: tl.constexpr):
    """Ask the second-level cache for K 16-bit weights behind each pointer of `lines` [BN], AHEAD a request; 0: do not."""
    if AHEAD:
        for start in range(0, K, 8 * AHEAD):
            at = tl.minimum(start + tl.arange(0, 8) * AHEAD, K - AHEAD)
            tl.inline_asm_elementwise(
                "cp.async.bulk.prefetch.L2.global [$1], 512; mov.u32 $0, 0;",
                "=r,l",
                [(lines[:, None] + at[None, :]).to(tl.int64)],
                dtype=tl.int32,
                is_pure=False,
                pack=1,
            )


@triton.jit
def begin_product(OVERLAP: tl.constexpr):
    """From here on everything that earlier kernels wrote may be read."""
    if OVERLAP:
        gdc_wait()


@triton.jit
def end_product(OVERLAP: tl.constexpr):
    """The weights are read: let the next kernel in."""
    if OVERLAP:
        gdc_launch_dependents()
