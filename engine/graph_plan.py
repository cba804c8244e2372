"""Which shapes are captured. Declared here, cut to what the limits need, refused where they make no sense."""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import UsageError
from engine.graphs import check_buckets
from engine.rows import RowLimits

ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
PROMPTS = (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)
CODEC_ROWS = (1, 2, 3, 4, 6, 8)
CODEC_FRAMES = (1, 2, 4)


@dataclass(frozen=True, kw_only=True)
class GraphPlan:
    """Buckets of a frame step's rows, a prefill's positions, a codec packet's rows and frames. More codec rows than the
    largest bucket are
    decoded in several packets, so that no packet holds up the others for long."""

    rows: tuple[int, ...] = ROWS
    prompts: tuple[int, ...] = PROMPTS
    codec_rows: tuple[int, ...] = CODEC_ROWS
    codec_frames: tuple[int, ...] = CODEC_FRAMES

    def within(self, limits: RowLimits, packet_frames: int) -> GraphPlan:
        """The buckets that these limits need.

        Raises:
            UsageError: a list that is empty, not rising or too short.
        """
        prompts = tuple(size for size in self.prompts if size < limits.positions)
        if not prompts:
            raise UsageError(f"no prompt bucket of {list(self.prompts)} fits {limits.positions} positions")
        return GraphPlan(
            rows=check_buckets("row", self.rows, reach=limits.rows),
            prompts=check_buckets("prompt", prompts, reach=prompts[-1]),
            codec_rows=check_buckets("codec row", self.codec_rows, reach=min(limits.rows, self.codec_rows[-1])),
            codec_frames=check_buckets("codec frame", self.codec_frames, reach=packet_frames),
        )
