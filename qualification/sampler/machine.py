"""Processor time of the whole machine and of the harness, so that what others used is a difference of counters."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psutil

_BUSY = ("user", "nice", "system", "irq", "softirq")  # `user` holds the guests; waiting for a disk is not busy


class MachineCpu:
    """Busy time of all processors, nanoseconds since start-up; None where the kernel keeps no account."""

    def __init__(self, times: Callable[[], Any] = psutil.cpu_times) -> None:
        self._times = times

    def read(self) -> int | None:
        """Nanoseconds so far."""
        try:
            times = self._times()
        except (OSError, ValueError):
            return None
        busy = sum(getattr(times, name, 0.0) for name in _BUSY)
        return round(busy * 1e9) if busy > 0 else None  # a sandbox shows zeros


class HarnessCpu:
    """Processor time of the process that started this one and of this one, nanoseconds."""

    def __init__(self, harness: int | None = None) -> None:
        self._harness = psutil.Process(os.getppid() if harness is None else harness)
        self._last = 0.0

    def read(self) -> int:
        """Nanoseconds so far; the harness's last figure stays when it has ended."""
        with suppress(psutil.Error):
            times = self._harness.cpu_times()
            self._last = times.user + times.system
        return round(self._last * 1e9) + time.process_time_ns()
