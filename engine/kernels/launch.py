"""How kernels follow one another without draining the machine, and what one does for the next.

With programmatic dependent launch a kernel may start while its predecessor ends. Every kernel waits for the whole of
its predecessor before it touches anything that one wrote, so a kernel's inputs are complete however far back they were
written. When a kernel lets its successor in matters for speed alone:

    OVERLAP 0   never: the same code runs one kernel at a time
            1   a matrix product once its weights are read: a successor let in before takes the multiprocessors of those
                at work
            2   and kernels of a few programs (attention, draws, sums) at their start: they leave most of the machine free

Weights depend on nobody. A product therefore asks the second-level cache for the weights of the product behind it, so
that the memory streams on while small kernels and the ends of large ones leave it idle.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

CHUNK_BYTES = 512  # one request to the cache


@dataclass(frozen=True, kw_only=True)
class Launch:
    """How a frame's kernels follow one another; `ahead_bytes`: most that a product asks for of the next one's weights.
    `overlap` above 0 needs compute capability 9."""

    overlap: int
    ahead_bytes: int


ONE_BY_ONE = Launch(overlap=0, ahead_bytes=0)
HOPPER = Launch(overlap=0, ahead_bytes=0)  # the fastest measured there, see docs/performance.md
HOPPER_CAPABILITY = (9, 0)


def default_launch(device: torch.device) -> Launch:
    """What a frame's kernels use on this device unless told otherwise; in Triton's interpreter, one after another."""
    if device.type != "cuda" or torch.cuda.get_device_capability(device) < HOPPER_CAPABILITY:
        return ONE_BY_ONE
    return HOPPER


@triton.jit
def begin_small(OVERLAP: tl.constexpr):
    """Start of a kernel of a few programs: from here on everything that earlier kernels wrote may be read."""
    if OVERLAP > 1:
        gdc_launch_dependents()
    if OVERLAP:
        gdc_wait()


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


@triton.jit
def prefetch(ptr, rows, stride, per_row, CHUNK: tl.constexpr):
    """This program's share of the first `per_row` chunks, CHUNK elements each, of every row `stride` elements apart."""
    if CHUNK:
        total = rows * per_row
        program = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
        for first in range(program * 256, total, tl.num_programs(0) * tl.num_programs(1) * 256):
            chunk = tl.minimum(first + tl.arange(0, 256), total - 1)
            at = ptr + (chunk // per_row).to(tl.int64) * stride + (chunk % per_row) * CHUNK
            tl.inline_asm_elementwise(
                "cp.async.bulk.prefetch.L2.global [$1], 512; mov.u32 $0, 0;",
                "=r,l",
                [at.to(tl.int64)],
                dtype=tl.int32,
                is_pure=False,
                pack=1,
            )
