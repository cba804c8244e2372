"""The harness of the overload figures: server and clients are on cores of their own."""

from __future__ import annotations

import os

import pytest

from tests.engine.server.overload_figures import CORES, on_core


@pytest.mark.skipif(not {0, 1} <= CORES, reason="this needs the cores 0 and 1")
def test_a_core_within_a_core_is_the_inner_one() -> None:
    before = os.sched_getaffinity(0)
    with on_core(0):
        assert os.sched_getaffinity(0) == {0}
        with on_core(1):
            assert os.sched_getaffinity(0) == {1}
        assert os.sched_getaffinity(0) == {0}
    assert os.sched_getaffinity(0) == before
