"""Shared pieces of the engine's tests: tiny checkpoints, each loaded once.

`tiny` has the published sixteen codebooks; `quick` has four, for tests that run many frames.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from engine.checkpoint import LoadedModel, load_model
from tests.engine.tiny_checkpoint import TinyShape, write_tiny_checkpoint

QUICK = TinyShape(hidden=32, predictor_hidden=16, heads=2, kv_heads=1, code_groups=4, seed=5)


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    """Tiny matrices gain nothing from threads, and a loaded machine loses much."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tiny_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def tiny_model(tiny_directory: Path) -> LoadedModel:
    return load_model(tiny_directory, device=torch.device("cpu"), dtype=torch.float32)


@pytest.fixture(scope="session")
def quick_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("quick"), QUICK)


@pytest.fixture(scope="session")
def quick_model(quick_directory: Path) -> LoadedModel:
    return load_model(quick_directory, device=torch.device("cpu"), dtype=torch.float32)
