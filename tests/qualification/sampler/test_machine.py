"""Processor time of the machine and of the harness."""

from __future__ import annotations

import os
import time
from types import SimpleNamespace

from qualification.sampler.machine import HarnessCpu, MachineCpu


def test_busy_time_leaves_idling_and_waiting_out() -> None:
    times = SimpleNamespace(user=1.0, nice=0.5, system=0.25, irq=0.125, softirq=0.125, idle=99.0, iowait=7.0, guest=0.5)
    assert MachineCpu(lambda: times).read() == 2_000_000_000


def test_a_sandbox_that_shows_zeros_keeps_no_account() -> None:
    assert MachineCpu(lambda: SimpleNamespace(user=0.0, system=0.0)).read() is None

    def closed() -> None:
        raise PermissionError("no /proc/stat here")

    assert MachineCpu(closed).read() is None


def test_the_harness_is_charged_with_its_work() -> None:
    cpu = HarnessCpu(os.getpid())
    before, end = cpu.read(), time.process_time() + 0.05
    while time.process_time() < end:
        pass
    assert cpu.read() - before > 0.05e9
