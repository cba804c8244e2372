"""One monotonic clock for every record of a run.

All times in raw records, phases and telemetry are nanoseconds since `zero_ns` of the operating system's monotonic
clock. That clock is the same in every process of the machine, so the telemetry process can share the zero by number.
Wall-clock time appears only beside phase events, to anchor the run in the calendar.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Clock:
    """Nanoseconds since a fixed zero. `zero_ns` is a reading of `time.monotonic_ns()`."""

    zero_ns: int = field(default_factory=time.monotonic_ns)

    def now_ns(self) -> int:
        return time.monotonic_ns() - self.zero_ns

    def seconds_until(self, at_ns: int) -> float:
        """Seconds from now to `at_ns`; negative once it has passed."""
        return (at_ns - self.now_ns()) / 1e9
